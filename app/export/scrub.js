'use strict';
// One scrubber moves every picture and the mark on every curve. Nothing moves until you start it.
const data = JSON.parse(document.getElementById('frames').textContent);
const slider = document.getElementById('scrub');
const button = document.getElementById('play');
const output = document.getElementById('now');
const reducedMotion = window.matchMedia('(prefers-reduced-motion: reduce)');
const last = data.moments.length - 1;
const STEP_MS = 90;
let timer = 0;

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const cells = data.cells.map((cell) => {
  const box = document.getElementById(cell.id);
  const image = box.querySelector('img');
  return { ...cell, image, near: box.querySelector('.near'), word: box.querySelector('.word'), at: box.querySelector('.at'), end: image.alt };
});

function show(cell, share, ended) {
  let place = 0;
  while (place + 1 < cell.shares.length && cell.shares[place + 1] <= share + 1e-9) place += 1;
  const png = cell.frames[place];
  const near = cell.psnr[place] === null ? '–' : `${cell.psnr[place].toFixed(1)} dB`;
  const where = fill(data.words.at, { now: cell.iterations[place].toLocaleString('en'), of: cell.of.toLocaleString('en') });
  cell.image.classList.toggle('gone', !png);
  if (png) cell.image.src = `data:image/png;base64,${png}`;
  cell.image.alt = ended ? cell.end : `${cell.what}, ${where}: ${near}`;
  cell.near.textContent = near;
  cell.word.classList.toggle('gone', !ended); // the verdict is on the last guess
  cell.at.textContent = where;
}

function move(moment) {
  const share = data.moments[moment];
  const words = fill(data.words.now, { share: Math.round(100 * share) });
  slider.value = moment;
  slider.setAttribute('aria-valuetext', words);
  output.textContent = words;
  for (const cell of cells) show(cell, share, moment === last);
  for (const mark of document.querySelectorAll('.mark')) {
    const from = Number(mark.dataset.from);
    const x = from + share * (Number(mark.dataset.to) - from);
    mark.setAttribute('x1', x);
    mark.setAttribute('x2', x);
  }
}

function pause() {
  clearInterval(timer);
  timer = 0;
  output.setAttribute('aria-live', 'polite');
  button.textContent = reducedMotion.matches ? data.words.step : data.words.play;
}

function next() {
  const moment = Number(slider.value);
  if (moment >= last) { pause(); return; }
  if (moment + 1 === last) pause();
  move(moment + 1);
}

button.addEventListener('click', () => {
  if (timer) { pause(); return; }
  if (Number(slider.value) >= last) move(0);
  if (reducedMotion.matches) { next(); return; }
  output.setAttribute('aria-live', 'off');
  button.textContent = data.words.pause;
  timer = setInterval(next, STEP_MS);
});
slider.addEventListener('input', () => { if (timer) pause(); move(Number(slider.value)); });
reducedMotion.addEventListener('change', pause);
pause();
move(last);
document.getElementById('player').hidden = false;

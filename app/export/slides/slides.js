'use strict';
// The address names the style: #slides, or #slides-3 for the third one, and #page. Printing is always the page.
const root = document.documentElement;
const deck = document.getElementById('deck');
const scrubber = document.getElementById('scrub');
const count = document.getElementById('slide-count');
const order = deck.dataset.order.split(' ');
const ALWAYS = ['deck', 'player'];
const FIELDS = 'input, select, textarea';
const CONTROLS = `a, button, summary, label, pre, ${FIELDS}`;
const SWIPE_PX = 48;
const slides = [...document.querySelectorAll('[data-slide]')];
slides.sort((one, other) => order.indexOf(one.dataset.slide) - order.indexOf(other.dataset.slide)); // a stable sort
let place = 0;
let touch = null;

const inSlides = () => root.classList.contains('slides');

function style() {
  if (/^#slides(-\d+)?$/.test(location.hash)) return 'slides';
  return location.hash === '#page' ? 'page' : root.dataset.opens;
}

function numbered() {
  const number = Number(location.hash.split('-')[1] || 1);
  return Math.min(Math.max(number, 1), slides.length) - 1;
}

function clear() {
  for (const hidden of document.querySelectorAll('.off')) hidden.classList.remove('off');
  for (const slide of slides) { slide.classList.remove('current'); slide.removeAttribute('tabindex'); }
}

function isolate(slide) {
  // Hide all that is neither in the slide nor around it.
  for (let node = slide; node !== document.body; node = node.parentElement) {
    for (const other of node.parentElement.children) {
      if (other !== node && !ALWAYS.includes(other.id)) other.classList.add('off');
    }
  }
}

function showSlide() {
  clear();
  place = numbered();
  const slide = slides[place];
  isolate(slide);
  slide.classList.add('current');
  slide.tabIndex = 0; // a slide that is too tall scrolls by keyboard
  root.dataset.kind = slide.dataset.slide;
  const several = scrubber !== null && Number(scrubber.max) > 0; // one guess each: nothing moves
  root.classList.toggle('moving', several && slide.querySelector('[id^=cell-]') !== null);
  count.textContent = deck.dataset.count.replace('[now]', place + 1).replace('[all]', slides.length);
  slide.scrollTop = 0;
  slide.focus({ preventScroll: true });
}

function draw() {
  const left = inSlides() && style() === 'page';
  root.classList.toggle('slides', style() === 'slides');
  if (inSlides()) { showSlide(); return; }
  clear();
  root.classList.remove('moving');
  if (left) slides[place].scrollIntoView(); // the reader goes on where the slides were
}

function go(to) {
  const next = Math.min(Math.max(to, 0), slides.length - 1);
  if (next !== place) location.replace(`#slides-${next + 1}`);
}

function leave() { location.hash = 'page'; }

const KEYS = {
  ArrowRight: () => go(place + 1), PageDown: () => go(place + 1),
  ArrowLeft: () => go(place - 1), PageUp: () => go(place - 1),
  Home: () => go(0), End: () => go(slides.length - 1), Escape: leave,
};

function onKey(event) {
  if (!inSlides() || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key !== 'Escape' && event.target.closest(FIELDS)) return;
  if (event.key === ' ' && !event.target.closest(CONTROLS)) {
    go(place + (event.shiftKey ? -1 : 1));
    event.preventDefault();
  } else if (KEYS[event.key]) {
    KEYS[event.key]();
    event.preventDefault();
  }
}

function onClick(event) {
  const free = inSlides() && !deck.contains(event.target) && !event.target.closest(CONTROLS);
  if (free && !event.target.closest('#player') && !String(getSelection())) go(place + 1);
}

function onTouchEnd(event) {
  if (!inSlides() || !touch) return;
  const end = event.changedTouches[0];
  const across = end.clientX - touch.clientX;
  const along = Math.abs(across) > 2 * Math.abs(end.clientY - touch.clientY);
  if (Math.abs(across) > SWIPE_PX && along) go(place + (across < 0 ? 1 : -1));
}

document.getElementById('show-slides').addEventListener('click', () => { location.hash = 'slides'; });
document.getElementById('leave-slides').addEventListener('click', leave);
document.getElementById('slide-back').addEventListener('click', () => go(place - 1));
document.getElementById('slide-next').addEventListener('click', () => go(place + 1));
document.addEventListener('keydown', onKey);
document.addEventListener('click', onClick);
document.addEventListener('touchstart', (event) => {
  const table = event.target.closest('.wide');
  const scrolls = table && table.scrollWidth > table.clientWidth;
  touch = scrolls || event.target.closest(FIELDS) ? null : event.changedTouches[0];
}, { passive: true });
document.addEventListener('touchend', onTouchEnd);
document.addEventListener('pointerup', (event) => {
  if (inSlides() && event.target.id === 'scrub') event.target.blur(); // the arrow keys turn the slides again
});
window.addEventListener('hashchange', draw);
deck.hidden = false;
draw();

// The slider of protection. The whole table is here, so the pictures follow the finger; Python hears the release.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};

function show(image, png, alt) {
  const next = png ? `data:image/png;base64,${png}` : '';
  image.alt = alt;
  image.classList.toggle('empty', !next);
  if (image.dataset.now === next) return;
  image.dataset.now = next;
  if (next) image.src = next; else image.removeAttribute('src');
}

class Stops {
  constructor(root) {
    this.root = root;
    this.turn = null; // counts what was sent to Python
    this.turned = false; // whether a phone shows the original
    this.build();
  }

  // Python answers each turn. Until it has answered the last one, its stop is one that the finger has left.
  update(data, send) {
    this.data = data;
    this.send = send;
    if (this.turn === null || data.turn >= this.turn) {
      this.turn = data.turn;
      this.stop = data.stop;
      this.key = data.upload;
    }
    this.label();
    this.fill();
  }

  // --- the elements

  build() {
    const whole = make('div');
    whole.append(this.top(), this.track(), this.said(), this.more());
    this.root.replaceChildren(whole);
  }

  top() {
    const top = make('div', 'top');
    const first = make('figure', 'original');
    this.originalName = make('figcaption');
    this.original = make('img');
    const firstStage = make('div', 'stage');
    firstStage.append(this.original);
    first.append(this.originalName, firstStage);
    const second = make('figure', 'rebuilt');
    this.rebuiltName = make('figcaption');
    this.rebuilt = make('img');
    const stage = make('div', 'stage');
    stage.append(this.rebuilt);
    stage.addEventListener('click', () => { if (this.onPhone()) this.flipOver(); });
    this.flip = make('button', 'flip');
    this.flip.type = 'button';
    this.flip.addEventListener('click', () => this.flipOver());
    second.append(this.rebuiltName, stage, this.flip);
    top.append(first, second, this.facts());
    return top;
  }

  facts() {
    const facts = make('div', 'facts');
    this.word = make('p', 'word');
    this.by = make('p', 'by');
    const list = make('dl');
    this.accuracyName = make('dt');
    this.accuracy = make('dd', 'accuracy');
    this.promiseName = make('dt');
    this.promise = make('dd');
    list.append(this.accuracyName, this.accuracy, this.promiseName, this.promise);
    facts.append(this.word, this.by, list);
    return facts;
  }

  track() {
    const track = make('div', 'track');
    const ends = make('div', 'ends');
    this.ends = [make('span'), make('span'), make('span')];
    ends.append(...this.ends);
    ends.setAttribute('aria-hidden', 'true');
    this.range = make('input');
    Object.assign(this.range, { type: 'range', min: 0, step: 1 });
    this.range.addEventListener('input', () => this.move(Number(this.range.value)));
    this.range.addEventListener('change', () => this.release());
    this.ticks = make('div', 'ticks');
    track.append(ends, this.range, this.ticks);
    return track;
  }

  said() {
    const said = make('div', 'said');
    this.sentence = make('p', 'sentence');
    this.lesson = make('p', 'lesson');
    this.note = make('p', 'note');
    said.append(this.sentence, this.lesson, this.note);
    return said;
  }

  more() {
    const more = make('details', 'more');
    this.summary = make('summary');
    this.choices = make('fieldset');
    this.reason = make('p', 'small');
    this.terms = make('p', 'small terms');
    more.append(this.summary, this.choices, this.reason, this.terms);
    new ResizeObserver(() => { // on the desk nothing is folded
      if (this.narrow === this.onPhone()) return;
      this.narrow = this.onPhone();
      more.open = !this.narrow;
    }).observe(this.root);
    return more;
  }

  // --- texts that do not depend on the stop

  label() {
    const { words, uploads, reason } = this.data;
    this.originalName.textContent = words.original;
    this.accuracyName.textContent = words.accuracy;
    this.accuracy.dataset.short = words.accuracy_short;
    this.promiseName.textContent = words.promise;
    [words.off, words.protection, words.strong].forEach((text, place) => { this.ends[place].textContent = text; });
    this.range.setAttribute('aria-label', words.protection);
    this.reason.textContent = reason;
    const shape = JSON.stringify(uploads.map((upload) => [upload.key, upload.title, upload.stops.map((stop) => stop.tick)]));
    if (shape === this.shape) return;
    this.shape = shape;
    this.choices.replaceChildren(make('legend', '', words.contents), ...uploads.map((upload) => this.choice(upload)));
    const ticks = uploads.find((upload) => upload.stops.length)?.stops.map((stop) => stop.tick) ?? [];
    this.range.max = Math.max(1, ticks.length - 1);
    this.ticks.replaceChildren(...ticks.map((text, place) => this.tick(text, place, ticks.length - 1)));
  }

  choice(upload) {
    const label = make('label', upload.stops.length ? '' : 'off');
    const input = make('input');
    Object.assign(input, { type: 'radio', name: 'upload', value: upload.key, disabled: !upload.stops.length });
    input.addEventListener('change', () => this.choose(upload.key));
    label.append(input, make('span', '', upload.title));
    return label;
  }

  // A label is a larger target than the slider's own thumb. The slider is the way of the keyboard.
  tick(text, place, last) {
    const button = make('button', '', text);
    Object.assign(button, { type: 'button', tabIndex: -1 });
    button.setAttribute('aria-hidden', 'true');
    button.style.left = `${(100 * place) / Math.max(1, last)}%`;
    button.addEventListener('click', () => { this.move(place); this.release(); });
    return button;
  }

  // --- what the visitor does

  onPhone() { return this.root.clientWidth <= 600; }

  flipOver() {
    this.turned = !this.turned;
    this.fill();
  }

  move(stop) {
    this.stop = stop;
    this.turned = false;
    this.fill();
  }

  choose(key) {
    this.key = key;
    this.turned = false;
    this.fill();
    this.release();
  }

  release() {
    this.turn += 1;
    this.send({ stop: this.stop, upload: this.key, turn: this.turn });
  }

  // --- what the stop shows

  fill() {
    const { uploads, words } = this.data;
    const upload = uploads.find((each) => each.key === this.key && each.stops.length) ?? uploads.find((each) => each.stops.length);
    if (!upload) return;
    this.stop = Math.min(this.stop, upload.stops.length - 1);
    const stop = upload.stops[this.stop];
    const turned = this.turned && this.onPhone();
    show(this.original, upload.original, upload.original_alt);
    show(this.rebuilt, turned ? upload.original : stop.src, turned ? upload.original_alt : stop.alt);
    this.rebuiltName.textContent = turned ? words.original : words.rebuilt;
    this.flip.textContent = turned ? words.turn_rebuilt : words.turn_original;
    this.word.textContent = stop.word;
    this.word.classList.toggle('leaking', stop.tone === 'leaking');
    this.by.textContent = stop.by;
    this.accuracy.replaceChildren(document.createTextNode(stop.accuracy), make('small', '', stop.spread));
    const observer = make('small', 'observer', stop.promise_observer);
    this.promise.replaceChildren(document.createTextNode(stop.promise), observer, make('small', '', stop.promise_terms));
    this.promise.className = `promise ${stop.promise_tone}`;
    this.sentence.textContent = stop.sentence;
    this.lesson.textContent = stop.lesson;
    this.note.textContent = stop.note;
    const ordinary = uploads.some((each) => each.key === 'ordinary' && each.stops.length);
    if (stop.easiest && ordinary) this.note.append(' ', this.toOrdinary(words));
    this.terms.textContent = stop.terms;
    // Chromium reports no change of a slider whose value a script has set meanwhile.
    if (Number(this.range.value) !== this.stop) this.range.value = this.stop;
    this.range.setAttribute('aria-valuetext', stop.place);
    [...this.ticks.children].forEach((tick, place) => tick.classList.toggle('now', place === this.stop));
    this.choices.querySelectorAll('input').forEach((input) => { input.checked = input.value === upload.key; });
    this.summary.textContent = `${words.contents}: ${upload.title}`;
  }

  toOrdinary(words) {
    const button = make('button', '', words.ordinary);
    button.type = 'button';
    button.addEventListener('click', () => {
      this.choose('ordinary');
      this.range.focus(); // this button is gone
    });
    return button;
  }
}

const known = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  const root = parentElement.querySelector('.stops');
  if (!root || !data) return undefined;
  if (!known.has(root)) known.set(root, new Stops(root));
  known.get(root).update(data, (choice) => setStateValue('choice', choice));
  return undefined;
}

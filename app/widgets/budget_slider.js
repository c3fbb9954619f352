// A slider of a few positions. Everything that a position says is in the data, so it follows the finger without a server.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const KEYS_MS = 400; // arrow keys pass through positions: the last one counts
const PENDING_MS = 4000; // how long a released position may differ from the data of the server

class Budget {
  constructor(root) {
    this.root = root;
    this.held = false; // while a finger or a key moves it, new data must not move it back
    this.pending = '';
    this.build();
  }

  build() {
    this.range = make('input');
    Object.assign(this.range, { type: 'range', min: 0, step: 1 });
    this.range.addEventListener('pointerdown', () => { this.byKey = false; });
    this.range.addEventListener('keydown', () => { this.byKey = true; });
    this.range.addEventListener('input', () => {
      this.held = true;
      this.show(Number(this.range.value));
    });
    this.range.addEventListener('change', () => this.release());
    this.ticks = make('div', 'ticks');
    this.ticks.setAttribute('aria-hidden', 'true'); // the slider itself says its position
    this.ends = make('div', 'ends');
    this.ends.setAttribute('aria-hidden', 'true');
    this.says = make('div', 'says');
    const rail = make('div', 'rail');
    rail.append(this.range, this.ticks);
    this.title = make('p', 'title');
    this.title.setAttribute('aria-hidden', 'true');
    this.root.replaceChildren(this.title, rail, this.ends, this.says);
  }

  update(data, choose) {
    this.data = data;
    this.choose = choose;
    this.range.max = data.stops.length - 1;
    this.title.textContent = data.title;
    this.range.setAttribute('aria-label', data.label);
    this.ends.replaceChildren(make('span', '', data.ends.less), make('span', '', data.ends.more));
    this.ticks.classList.toggle('words', !data.ends.more); // a long last label must not leave a phone
    this.ticks.replaceChildren(...data.stops.map((stop, place) => this.tick(stop, place)));
    const chosen = data.stops[data.at].key;
    const waiting = this.pending && this.pending !== chosen && Date.now() - this.since < PENDING_MS;
    const place = data.stops.findIndex((stop) => stop.key === this.pending);
    if (this.held) this.show(Math.min(Number(this.range.value), data.stops.length - 1));
    else if (waiting && place >= 0) this.show(place);
    else {
      this.pending = '';
      this.show(data.at);
    }
  }

  tick(stop, place) {
    const box = make('span', stop.reason ? 'closed' : '', stop.tick);
    box.addEventListener('click', () => {
      this.byKey = false;
      this.show(place);
      this.release();
    });
    return box;
  }

  show(place) {
    const stop = this.data.stops[place];
    this.range.value = place;
    [...this.ticks.children].forEach((tick, index) => tick.classList.toggle('now', index === place));
    const parts = stop.reason
      ? [make('p', '', stop.reason)]
      : [make('p', `size ${stop.side}`, stop.size), make('p', '', stop.terms),
        ...stop.lines.map((line) => make('p', 'faint', line))];
    this.says.replaceChildren(...parts.filter((part) => part.textContent));
    const words = parts.map((part) => part.textContent).filter(Boolean).join('. ');
    this.range.setAttribute('aria-valuetext', `${stop.tick}: ${words}`);
  }

  release() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.send(), this.byKey ? KEYS_MS : 0);
  }

  send() {
    this.held = false;
    const { stops, at } = this.data;
    const stop = stops[Number(this.range.value)];
    if (stop.reason) { // its reason stays readable; the thumb goes back to what holds
      this.range.value = at;
      return;
    }
    if (stop.key === stops[at].key) return;
    this.pending = stop.key;
    this.since = Date.now();
    this.choose(stop.key);
  }
}

const sliders = new WeakMap();

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const root = parentElement.querySelector('.budget');
  if (!root || !data) return undefined;
  if (!sliders.has(root)) sliders.set(root, new Budget(root));
  sliders.get(root).update(data, (key) => setTriggerValue('chosen', key));
  return undefined;
}

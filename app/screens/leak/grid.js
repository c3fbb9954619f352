// The pictures as a table, one scrubber for all of them, and one of them laid over the original.
const make = (name, className, text) => {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};
const still = () => window.matchMedia('(prefers-reduced-motion: reduce)').matches;
const source = (png) => `data:image/png;base64,${png}`;

function show(image, png) {
  const next = png ? source(png) : '';
  if (image.dataset.now === (next || 'none')) return;
  image.dataset.now = next || 'none';
  if (next) image.src = next; else image.removeAttribute('src');
  image.classList.toggle('empty', !next);
}

class Grid {
  constructor(root) {
    this.root = root;
    this.timer = 0;
    // What the visitor chose outlives the drawing: Streamlit may put another in its place at any pass.
    this.kept = window.leaklensGrid ??= { moment: null }; // moment null: the last one
  }

  update(data) {
    const shape = JSON.stringify([data.columns.map((one) => one.title), data.rows.map((one) => one.title)]);
    const fresh = shape !== this.shape;
    this.data = data;
    if (shape !== this.kept.shape) { this.kept.shape = shape; this.kept.moment = null; }
    if (fresh) { this.pause(); this.shape = shape; this.build(); }
    if (data.moments !== this.kept.moments) { this.kept.moments = data.moments; this.kept.moment = null; }
    this.fill();
    if (data.autoplay && data.moments > 1) this.perform(data.autoplay);
  }

  // Once in the life of a page; a grid that is put in the place of another goes on where that one was.
  perform(name) {
    const shown = window.leaklensShown ??= {};
    if (shown[name] === 'over' || this.timer || still()) return;
    this.kept.moment = shown[name] ?? 0;
    this.play((moment) => { shown[name] = moment ?? 'over'; });
  }

  build() {
    const { columns, rows, original, words } = this.data;
    const table = make('table');
    table.append(make('caption', 'unseen', words.caption));
    const head = make('tr');
    head.append(make('td'));
    this.heads = columns.map(() => { const th = make('th'); th.scope = 'col'; head.append(th); return th; });
    const last = make('th', 'apart', original.title);
    last.scope = 'col';
    head.append(last);
    const top = make('thead');
    top.append(head);
    const body = make('tbody');
    this.cells = rows.map((row, at) => {
      const line = make('tr', row.kind);
      const name = make('th', '', row.title);
      name.scope = 'row';
      if (row.note) name.append(make('small', '', row.note));
      line.append(name);
      const made = columns.map((_, place) => this.cell(line, at, place));
      if (at === 0) line.append(this.truth(rows.length));
      body.append(line);
      return made;
    });
    table.append(top, body);
    const sheet = make('div', 'sheet');
    sheet.tabIndex = 0;
    sheet.setAttribute('role', 'region');
    sheet.setAttribute('aria-label', words.caption);
    sheet.append(table);
    const left = make('div', 'left');
    left.append(this.player(), sheet);
    const whole = make('div', 'whole');
    whole.append(left, this.wiper());
    this.root.replaceChildren(whole);
  }

  cell(line, row, column) {
    const box = make('td');
    const button = make('button');
    button.type = 'button';
    const image = make('img');
    button.append(image);
    const value = make('b');
    const state = make('span');
    box.append(button, value, state);
    line.append(box);
    button.addEventListener('click', () => { this.kept.chosen = [row, column]; this.fill(); });
    return { box, button, image, value, state };
  }

  truth(rows) {
    const box = make('td', 'apart');
    box.rowSpan = rows;
    this.original = make('img');
    this.grey = make('span');
    box.append(this.original, this.grey);
    return box;
  }

  player() {
    const { words } = this.data;
    const bar = make('div', 'player');
    this.button = make('button', 'play', words.play);
    this.button.type = 'button';
    this.button.addEventListener('click', () => this.press());
    this.range = make('input');
    Object.assign(this.range, { type: 'range', min: 0, step: 1 });
    this.range.setAttribute('aria-label', words.scrub);
    this.range.addEventListener('input', () => {
      this.pause();
      this.tell?.(null);
      this.kept.moment = Number(this.range.value);
      this.fill();
    });
    this.when = make('output');
    bar.append(this.button, this.range, this.when);
    this.bar = bar;
    return bar;
  }

  wiper() {
    const { words } = this.data;
    const box = make('figure', 'wiper');
    const stage = make('div', 'stage');
    this.under = make('img');
    this.over = make('img', 'over');
    this.edge = make('i');
    stage.append(this.under, this.over, this.edge);
    this.wipe = make('input');
    Object.assign(this.wipe, { type: 'range', min: 0, max: 100, value: this.kept.wiped ?? 50 });
    this.wipe.setAttribute('aria-label', words.wipe);
    this.wipe.addEventListener('input', () => { this.kept.wiped = Number(this.wipe.value); this.cut(); });
    this.told = make('figcaption');
    this.more = make('p');
    box.append(make('h2', '', words.choose), stage, this.wipe, this.told, this.more);
    return box;
  }

  // --- what stands in it

  last() { return Math.max(0, this.data.moments - 1); }

  guess(cell) {
    const many = cell.frames.length;
    if (!many) return { png: cell.src, psnr: cell.value };
    if (this.kept.moment === null || this.kept.moment >= this.last()) return { png: cell.frames[many - 1], psnr: cell.value };
    const place = Math.round((this.kept.moment / this.last()) * (many - 1));
    const value = cell.psnr[place];
    return { png: cell.frames[place], psnr: value === null ? '–' : `${value.toFixed(1)} dB` };
  }

  fill() {
    const { columns, rows, original, words, moments, labels } = this.data;
    columns.forEach((column, at) => {
      const head = this.heads[at];
      head.replaceChildren(document.createTextNode(column.title), ...column.lines.map((one) => make('small', one.side, one.text)));
    });
    rows.forEach((row, at) => row.cells.forEach((cell, place) => this.put(this.cells[at][place], cell)));
    show(this.original, original.src);
    this.original.alt = original.alt;
    this.grey.textContent = original.caption;
    const there = moments > 1;
    this.bar.hidden = !there;
    this.range.max = this.last();
    this.range.value = this.kept.moment ?? this.last();
    const label = labels[this.kept.moment ?? this.last()] ?? '';
    this.when.textContent = label;
    this.range.setAttribute('aria-valuetext', label);
    this.button.textContent = this.timer ? words.pause : still() ? words.step : words.play;
    this.compare();
  }

  put(seat, cell) {
    const { png, psnr } = this.guess(cell);
    show(seat.image, png);
    seat.image.alt = cell.alt;
    seat.button.disabled = !png;
    seat.button.setAttribute('aria-label', cell.alt || this.data.words.caption);
    seat.button.title = cell.hover;
    seat.value.textContent = psnr;
    seat.state.textContent = cell.state;
    seat.box.className = cell.tone;
    const [row, column] = this.choice();
    const here = this.cells[row]?.[column] === seat;
    seat.button.classList.toggle('chosen', here);
    seat.button.setAttribute('aria-pressed', here);
  }

  choice() {
    const there = (row, column) => this.data.rows[row]?.cells[column];
    const [row, column] = this.kept.chosen ?? [this.data.rows.length - 1, 0];
    return there(row, column) ? [row, column] : [this.data.rows.length - 1, 0];
  }

  compare() {
    const { columns, rows, original, words } = this.data;
    const [row, column] = this.choice();
    const cell = rows[row]?.cells[column];
    if (!cell) return;
    show(this.under, this.guess(cell).png);
    show(this.over, original.src);
    this.under.alt = cell.alt;
    this.over.alt = original.alt;
    this.told.textContent = words.wiped.replace('{what}', `${rows[row].title}, ${columns[column].title}`);
    this.more.textContent = cell.hover || words.hint;
    this.cut();
  }

  cut() {
    const at = Number(this.wipe.value);
    this.over.style.clipPath = `inset(0 ${100 - at}% 0 0)`;
    this.edge.style.left = `${at}%`;
    this.wipe.setAttribute('aria-valuetext', `${at} %`);
  }

  // --- movement

  press() {
    if (this.timer) { this.pause(); this.tell(null); this.fill(); return; }
    if (!still()) { this.play(); return; }
    const now = this.kept.moment ?? this.last();
    this.kept.moment = now >= this.last() ? 0 : Math.min(this.last(), now + Math.ceil(this.last() / 8));
    this.fill();
  }

  play(tell = () => {}) {
    this.pause();
    this.tell = tell;
    if (this.kept.moment === null || this.kept.moment >= this.last()) this.kept.moment = 0;
    this.timer = setInterval(() => {
      this.kept.moment += 1;
      if (this.kept.moment >= this.last()) { this.pause(); this.kept.moment = null; }
      tell(this.kept.moment);
      this.fill();
    }, 90);
    this.fill();
  }

  pause() { clearInterval(this.timer); this.timer = 0; }
}

const grids = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  const root = parentElement.querySelector('.grid');
  if (!root || !data) return undefined;
  if (!grids.has(root)) grids.set(root, new Grid(root));
  const grid = grids.get(root);
  grid.update(data);
  return () => grid.pause();
}

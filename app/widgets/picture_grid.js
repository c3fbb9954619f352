// The pictures as a table, one scrubber for all of them, and a comparison of the chosen picture with the original.
const make = (name, className, text) => {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
};
const reducedMotion = () => window.matchMedia('(prefers-reduced-motion: reduce)').matches;
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
    // The choices of the visitor are kept on the window: Streamlit may replace this element at any pass.
    this.kept = window.leaklensGrid ??= { moment: null }; // moment null: the last one
  }

  update(data) {
    const columnTitles = data.columns.map((column) => column.title);
    const rowTitles = data.rows.map((row) => row.title);
    const shape = JSON.stringify([columnTitles, rowTitles]);
    const shapeChanged = shape !== this.shape;
    this.data = data;
    if (shape !== this.kept.shape) {
      this.kept.shape = shape;
      this.kept.moment = null;
    }
    if (shapeChanged) {
      this.pause();
      this.shape = shape;
      this.build();
    }
    if (data.moments !== this.kept.moments) {
      this.kept.moments = data.moments;
      this.kept.moment = null;
    }
    this.fill();
    if (data.autoplay && data.moments > 1) this.playOnce(data.autoplay);
  }

  // Plays once per page. A grid that replaces another one continues at the moment of that grid.
  playOnce(name) {
    const shown = window.leaklensShown ??= {};
    if (shown[name] === 'over' || this.timer || reducedMotion()) return;
    this.kept.moment = shown[name] ?? 0;
    this.play((moment) => { shown[name] = moment ?? 'over'; });
  }

  build() {
    const { columns, rows, original, words } = this.data;
    const table = make('table');
    table.style.setProperty('--columns', columns.length + 1);
    table.style.setProperty('--most', rows.length > 1 ? '118px' : '190px');
    table.append(make('caption', 'unseen', words.caption));
    const head = make('tr');
    head.append(make('td'));
    this.heads = columns.map(() => {
      const columnHead = make('th');
      columnHead.scope = 'col';
      head.append(columnHead);
      return columnHead;
    });
    const last = make('th', 'apart', original.title);
    last.scope = 'col';
    head.append(last);
    const top = make('thead');
    top.append(head);
    const body = make('tbody');
    this.cells = rows.map((row, rowIndex) => {
      const line = make('tr', row.kind);
      const name = make('th', '', row.title);
      name.scope = 'row';
      if (row.note) name.append(make('small', '', row.note));
      line.append(name);
      const cells = columns.map((_, columnIndex) => this.cell(line, rowIndex, columnIndex));
      if (rowIndex === 0) line.append(this.originalCell(rows.length));
      body.append(line);
      return cells;
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
    const word = make('b');
    const by = make('span');
    box.append(button, word, by);
    line.append(box);
    button.addEventListener('click', () => {
      this.kept.chosen = [row, column];
      this.fill();
    });
    return { box, button, image, word, by };
  }

  originalCell(rowCount) {
    const box = make('td', 'apart');
    box.rowSpan = rowCount;
    this.original = make('img');
    box.append(this.original);
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
      this.onMoment?.(null);
      this.kept.moment = Number(this.range.value);
      this.fill();
    });
    this.momentLabel = make('output');
    bar.append(this.button, this.range, this.momentLabel);
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
    this.dragOn(stage);
    this.wipe = make('input');
    Object.assign(this.wipe, { type: 'range', min: 0, max: 100, value: this.kept.wiped ?? 50 });
    this.wipe.setAttribute('aria-label', words.wipe);
    this.wipe.addEventListener('input', () => this.wipeTo(Number(this.wipe.value)));
    this.flip = make('button', 'flip phone');
    this.flip.type = 'button';
    this.flip.addEventListener('click', () => this.turn());
    this.strength = make('input', 'phone');
    Object.assign(this.strength, { type: 'range', min: 0, step: 1 });
    this.strength.setAttribute('aria-label', words.strength);
    this.strength.addEventListener('input', () => {
      this.kept.chosen = [this.data.rows.length - 1, Number(this.strength.value)];
      this.fill();
    });
    this.ends = make('div', 'ends phone');
    this.ends.append(make('span', '', words.less), make('span', '', words.more));
    this.verdict = make('p', 'verdict phone');
    this.promise = make('p', 'phone');
    this.comparison = make('figcaption');
    this.scores = make('dl', 'scores');
    this.details = make('p');
    box.append(
      make('h2', '', words.choose), stage, this.flip, this.wipe, this.strength, this.ends,
      this.verdict, this.promise, this.comparison, this.scores, this.details,
    );
    return box;
  }

  // Dragging over the picture wipes. A tap on a phone switches between the original and the rebuilt picture.
  dragOn(stage) {
    let start = null;
    const share = (event) => {
      const box = stage.getBoundingClientRect();
      return Math.round(Math.min(100, Math.max(0, (100 * (event.clientX - box.left)) / box.width)));
    };
    stage.addEventListener('pointerdown', (event) => {
      start = event.clientX;
      stage.setPointerCapture(event.pointerId);
      if (!this.onPhone()) this.wipeTo(share(event));
    });
    stage.addEventListener('pointermove', (event) => {
      if (start !== null && Math.abs(event.clientX - start) > 6) this.wipeTo(share(event));
    });
    stage.addEventListener('pointerup', (event) => {
      const tapped = start !== null && Math.abs(event.clientX - start) <= 6;
      if (tapped && this.onPhone()) this.turn();
      start = null;
    });
    stage.addEventListener('pointercancel', () => { start = null; });
  }

  onPhone() { return this.root.clientWidth <= 600; }

  showsOriginal() { return Number(this.wipe.value) > 50; }

  turn() { this.wipeTo(this.showsOriginal() ? 0 : 100); }

  wipeTo(percent) {
    this.kept.wiped = percent;
    this.wipe.value = percent;
    this.cut();
  }

  scoreBar(score) {
    const track = make('span', 'track');
    const fill = make('i');
    fill.style.width = `${100 * score.share}%`;
    track.append(fill);
    if (score.grey !== null) {
      const mark = make('b');
      mark.style.left = `${100 * score.grey}%`;
      track.append(mark);
    }
    const value = make('dd');
    value.append(track, make('span', 'number', score.text));
    return [make('dt', '', score.name), value];
  }

  // --- content

  last() { return Math.max(0, this.data.moments - 1); }

  atEnd() { return this.kept.moment === null || this.kept.moment >= this.last(); }

  guess(cell) {
    const lastFrame = cell.frames.length - 1;
    if (lastFrame < 0) return cell.src;
    const place = this.atEnd() ? lastFrame : Math.round((this.kept.moment / this.last()) * lastFrame);
    return cell.frames[place];
  }

  fill() {
    const { columns, rows, original, words, moments, labels } = this.data;
    columns.forEach((column, columnIndex) => {
      const title = document.createTextNode(column.title);
      const lines = column.lines.map((line) => make('small', line.side, line.text));
      this.heads[columnIndex].replaceChildren(title, ...lines);
    });
    const label = labels[this.kept.moment ?? this.last()] ?? '';
    this.momentLabel.textContent = label;
    rows.forEach((row, rowIndex) => {
      row.cells.forEach((cell, columnIndex) => this.put(this.cells[rowIndex][columnIndex], cell));
    });
    show(this.original, original.src);
    this.original.alt = original.alt;
    this.bar.hidden = moments <= 1;
    this.range.max = this.last();
    this.range.value = this.kept.moment ?? this.last();
    this.range.setAttribute('aria-valuetext', label);
    this.button.textContent = this.buttonText(words);
    this.compare();
  }

  buttonText(words) {
    if (this.timer) return words.pause;
    return reducedMotion() ? words.step : words.play;
  }

  put(view, cell) {
    const png = this.guess(cell);
    show(view.image, png);
    const alt = this.altOf(cell);
    view.image.alt = alt;
    view.button.disabled = !png;
    view.button.setAttribute('aria-label', alt || this.data.words.caption);
    view.button.title = cell.remark;
    view.word.textContent = this.atEnd() ? cell.word : '…'; // the verdict is about the last guess
    view.by.textContent = cell.by;
    view.box.className = this.atEnd() ? cell.tone : '';
    const [row, column] = this.choice();
    const chosen = this.cells[row]?.[column] === view;
    view.button.classList.toggle('chosen', chosen);
    view.button.setAttribute('aria-pressed', chosen);
  }

  // The verdict and the scores are about the last guess: an earlier one has its moment in their place.
  altOf(cell) { return this.atEnd() ? cell.alt : `${cell.name}: ${this.momentLabel.textContent}`; }

  choice() {
    const lastRow = this.data.rows.length - 1;
    const [row, column] = this.kept.chosen ?? [lastRow, 0];
    return this.data.rows[row]?.cells[column] ? [row, column] : [lastRow, 0];
  }

  compare() {
    const { columns, rows, original, words } = this.data;
    const [row, column] = this.choice();
    const cell = rows[row]?.cells[column];
    if (!cell) return;
    if (this.kept.wiped === undefined && this.onPhone()) this.wipe.value = 0; // a phone shows the rebuilt picture first
    show(this.under, this.guess(cell));
    show(this.over, original.src);
    this.under.alt = this.altOf(cell);
    this.over.alt = original.alt;
    this.comparison.textContent = words.wiped.replace('{what}', `${rows[row].title}, ${columns[column].title}`);
    const scores = this.atEnd() ? cell.scores : [];
    this.scores.replaceChildren(...scores.flatMap((score) => this.scoreBar(score)));
    const explained = cell.scores.length ? words.scores : words.hint;
    this.details.textContent = this.atEnd() ? explained : words.moving;
    this.strength.max = columns.length - 1;
    this.strength.value = column;
    this.strength.setAttribute('aria-valuetext', `${columns[column].title}: ${cell.word}`);
    this.verdict.textContent = `${columns[column].title}: ${cell.word}`;
    this.promise.textContent = columns[column].lines.map((line) => line.text).join(' · '); // its head is in the grid
    this.verdict.classList.toggle('leaking', cell.tone === 'leaking');
    this.cut();
  }

  cut() {
    const percent = Number(this.wipe.value);
    this.over.style.clipPath = `inset(0 ${100 - percent}% 0 0)`;
    this.edge.style.left = `${percent}%`;
    this.wipe.setAttribute('aria-valuetext', `${percent} %`);
    this.flip.textContent = this.showsOriginal() ? this.data.words.rebuilt : this.data.words.original;
  }

  // --- animation

  press() {
    if (this.timer) {
      this.pause();
      this.onMoment(null);
      this.fill();
      return;
    }
    if (!reducedMotion()) {
      this.play();
      return;
    }
    const now = this.kept.moment ?? this.last();
    const next = now + Math.ceil(this.last() / 8);
    this.kept.moment = now >= this.last() ? 0 : Math.min(this.last(), next);
    this.fill();
  }

  play(onMoment = () => {}) {
    this.pause();
    this.onMoment = onMoment;
    if (this.kept.moment === null || this.kept.moment >= this.last()) this.kept.moment = 0;
    this.timer = setInterval(() => {
      this.kept.moment += 1;
      if (this.kept.moment >= this.last()) {
        this.pause();
        this.kept.moment = null;
      }
      onMoment(this.kept.moment);
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

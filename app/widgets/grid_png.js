// A grid of pictures as one PNG: titles of rows and columns, verdicts in words, and the original.
const CELL = 150; // width of a picture, in CSS pixels
const GAP = 22;
const EDGE = 28;
const SIDE = 150; // width of the titles of the rows
const LINE = 17;
const SCALE = 2; // so that text stays sharp on paper
const FONT = 'Arial, Helvetica, sans-serif';
const INK = '#0F172A';
const PAPER = '#FFFFFF';
const FAINT = '#55637A';
const LEAKING = '#C2410C';
const SIDES = { leaking: LEAKING, weak: '#92400E', private: '#0F766E', ink: INK }; // of the size of a promise

const pictureOf = async (png) => {
  if (!png) return null;
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  return image;
};

// The text in lines that fit the width. A word that is too long has a line of its own.
function wrapped(context, text, width) {
  const lines = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line ? `${line} ${word}` : word;
    if (line && context.measureText(longer).width > width) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line].filter(Boolean);
}

// Each part of a cell is [text, font, colour]. Returns the y below the last line; without `draw` it only measures.
function write(context, parts, x, y, width, draw) {
  let below = y;
  for (const [text, font, colour] of parts) {
    context.font = `${font} ${FONT}`;
    context.fillStyle = colour;
    for (const line of wrapped(context, text, width)) {
      below += LINE;
      if (draw) context.fillText(line, x, below - 4);
    }
  }
  return below;
}

const headOf = (column) => [
  [column.title, '600 14px', INK],
  ...column.lines.map((line) => [line.text, '12px', SIDES[line.side] ?? FAINT]),
];
const rowTitleOf = (row) => [[row.title, '600 14px', INK], [row.note ?? '', '12px', FAINT]];
function captionOf(cell) {
  const colour = cell.tone === 'leaking' ? LEAKING : INK;
  return [[cell.word, '600 14px', colour], [cell.by, '13px', FAINT]];
}

const placeOf = (column) => EDGE + SIDE + GAP + column * (CELL + GAP);

// The heights of the head and of each row, from the longest text in them.
function measured(context, data) {
  const below = (parts, width) => write(context, parts, 0, 0, width, false);
  const heads = [...data.columns.map(headOf), [[data.original.title, '600 14px', INK]]];
  const head = Math.max(...heads.map((parts) => below(parts, CELL))) + 8;
  const rows = data.rows.map((row) => {
    const captions = row.cells.map(captionOf);
    const text = Math.max(...captions.map((parts) => below(parts, CELL)));
    return Math.max(CELL + text, below(rowTitleOf(row), SIDE)) + GAP;
  });
  return { head, rows };
}

function drawPicture(context, image, x, y) {
  context.fillStyle = '#E2E8F0';
  context.fillRect(x, y, CELL, CELL);
  if (image) context.drawImage(image, x, y, CELL, CELL);
}

// `data` is the JSON of the grid on the page: columns, rows, original and words. `foot` is a sentence below it.
export async function gridPng(data) {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d');
  const { head, rows } = measured(context, data);
  const lastColumn = data.columns.length;
  const width = placeOf(lastColumn) + CELL + EDGE;
  const titleHeight = 34;
  const foot = [[data.foot ?? '', '12px', FAINT]];
  const footHeight = write(context, foot, 0, 0, width - 2 * EDGE, false);
  const height = EDGE + titleHeight + head + rows.reduce((sum, row) => sum + row, 0) + footHeight + EDGE;
  [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
  context.scale(SCALE, SCALE);
  context.imageSmoothingEnabled = false; // pixels stay pixels
  context.fillStyle = PAPER;
  context.fillRect(0, 0, width, height);
  write(context, [[data.words.caption, '600 18px', INK]], EDGE, EDGE, width - 2 * EDGE, true);

  const top = EDGE + titleHeight;
  const heads = [...data.columns.map(headOf), [[data.original.title, '600 14px', INK]]];
  heads.forEach((parts, column) => {
    const shorter = head - 8 - write(context, parts, 0, 0, CELL, false);
    write(context, parts, placeOf(column), top + shorter, CELL, true);
  });

  const original = await pictureOf(data.original.src);
  let y = top + head;
  for (const [index, row] of data.rows.entries()) {
    write(context, rowTitleOf(row), EDGE, y, SIDE, true);
    for (const [column, cell] of row.cells.entries()) {
      drawPicture(context, await pictureOf(cell.src), placeOf(column), y);
      write(context, captionOf(cell), placeOf(column), y + CELL, CELL, true);
    }
    if (index === 0) {
      drawPicture(context, original, placeOf(lastColumn), y);
    }
    y += rows[index];
  }
  write(context, foot, EDGE, y, width - 2 * EDGE, true);
  return new Promise((resolve) => { canvas.toBlob(resolve, 'image/png'); });
}

function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The button of the page. The component passes the grid as its data.
export default function (component) {
  const { data, parentElement } = component;
  const button = parentElement.querySelector('button');
  if (!button || !data) return undefined;
  button.textContent = data.label;
  button.onclick = async () => save(await gridPng(data.grid), 'leaklens-grid.png');
  return () => { button.onclick = null; };
}

'use strict';
// Finds the stored result that is nearest to the chosen values, and writes what differs. It needs no network.
const stored = JSON.parse(document.getElementById('stored').textContent);
const chooser = document.getElementById('chooser');
const nearest = document.getElementById('nearest');
const selects = stored.choices.map((name) => chooser.querySelector(`select[name=${name}]`));
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const distance = (result, chosen) => result.values.filter((value, place) => value !== chosen[place]).length;

function equallyNear(chosen) {
  const least = Math.min(...stored.results.map((result) => distance(result, chosen)));
  const near = stored.results.filter((result) => distance(result, chosen) === least);
  // The result of this page first, then the one that gave away most: a reader must not see a harmless one by luck.
  return near.sort((one, other) => (other.own && least === 0) - (one.own && least === 0) || other.rank - one.rank
    || other.ids.length - one.ids.length);
}

function counts(results) {
  const many = new Map();
  for (const result of results) many.set(result.verdict, (many.get(result.verdict) || 0) + 1);
  return [...many].map(([verdict, count]) => `${verdict}: ${count}`).join('; ');
}

function others(near, best, same) {
  if (near.length === 1) return stored.words.only;
  const text = fill(stored.words.equal, { count: near.length, verdicts: counts(near) });
  if (best.own && same) return `${text} ${stored.words.own}`;
  const alike = near.every((result) => result.verdict === best.verdict);
  return `${text} ${alike ? stored.words.alike : stored.words.most}`;
}

function difference(name, old, value) {
  const move = stored.moves[`${name} ${old} ${value}`];
  const texts = stored.values[name];
  const change = { choice: stored.titles[name], old: texts[old], new: texts[value] };
  const item = element('li');
  item.append(element('b', move.sign, `sign ${move.direction}`), ` ${fill(stored.words.change, change)} `);
  item.append(element('span', move.source, 'faint'));
  if (move.pairs.length) {
    const list = element('details');
    list.append(element('summary', stored.words.pairs), element('p', move.pairs.join(', '), 'ids'));
    item.append(list);
  }
  return item;
}

function show() {
  const chosen = selects.map((select) => select.value);
  const near = equallyNear(chosen);
  const best = near[0];
  const heading = element('p', fill(stored.words.nearest, { title: best.title }), 'verdict');
  heading.append(': ', element('b', best.verdict, best.leaks ? 'leaking' : ''), '.');
  const same = distance(best, chosen) === 0;
  nearest.replaceChildren(heading, element('p', best.settings), element('p', others(near, best, same)));
  nearest.append(element('p', fill(stored.words.ids, { ids: best.ids.join(', ') }), 'faint ids'));
  const differing = stored.choices.map((_, place) => place).filter((place) => best.values[place] !== chosen[place]);
  if (!differing.length) {
    nearest.append(element('p', stored.words.same));
    return;
  }
  const list = element('ul', '', 'moves');
  for (const place of differing) list.append(difference(stored.choices[place], best.values[place], chosen[place]));
  nearest.append(element('p', fill(stored.words.differs, { count: differing.length })), list);
  if (differing.length > 1) nearest.append(element('p', stored.words.together, 'faint'));
}

if (stored.results.length) { // none where the shipped results cannot be read: the table of values stays
  for (const select of selects) select.addEventListener('change', show);
  chooser.hidden = false;
  document.getElementById('values').classList.add('paper-only');
  show();
}

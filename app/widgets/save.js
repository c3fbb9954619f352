// Plotly draws a chart as layers of SVG. One SVG of all layers is the picture; a canvas turns it into a PNG.
(() => {
  const element = (name, attributes) => {  // no markup in this file: a sanitiser would drop the whole script
    const made = document.createElementNS('http://www.w3.org/2000/svg', name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    return made;
  };
  const picture = (chart) => {
    const { width, height } = chart.getBoundingClientRect();
    const paper = getComputedStyle(document.querySelector('.stApp')).backgroundColor;
    const whole = element('svg', { width, height, viewBox: `0 0 ${width} ${height}` });
    whole.append(element('rect', { width, height, fill: paper }));
    for (const layer of chart.querySelectorAll('svg.main-svg')) {
      const copy = layer.cloneNode(true);
      copy.removeAttribute('style');
      whole.append(copy);
    }
    return { width, height, svg: new XMLSerializer().serializeToString(whole) };
  };
  const save = (blob, name) => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const png = ({ width, height, svg }, name) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(blob, name), 'image/png');
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  };
  // The values behind the chart: a row for each point, or for each cell of a heat map. Bands without a name are left out.
  const cell = (value) => {
    const text = value === null || value === undefined ? '' : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = (trace) => {
    const xs = Array.from(trace.x ?? []);
    const ys = Array.from(trace.y ?? []);
    if (trace.z) return Array.from(trace.z).flatMap((row, at) => Array.from(row).map((z, to) => [xs[to] ?? to, ys[at] ?? at, z]));
    return xs.map((x, at) => [x, ys[at], '']);
  };
  const table = (chart) => {
    const named = (chart._fullData ?? chart.data).filter((trace) => trace.z || (trace.name && trace.hoverinfo !== 'skip'));
    const body = named.flatMap((trace) => rows(trace).map((row) => [trace.name ?? '', ...row]));
    return [['line', 'x', 'y', 'value'], ...body].map((row) => row.map(cell).join(',')).join('\n') + '\n';
  };
  // One listener for the page, because every pass replaces the buttons.
  if (window.leaklensSaves) return;
  window.leaklensSaves = true;
  document.addEventListener('click', (event) => {
    const button = event.target.closest('button[data-save]');
    const chart = button && document.querySelector(`.st-key-chart-${button.dataset.chart} .js-plotly-plot`);
    if (!chart) return;
    const name = `leaklens-${button.dataset.chart}.${button.dataset.save}`;
    if (button.dataset.save === 'csv') {
      save(new Blob([table(chart)], { type: 'text/csv' }), name);
      return;
    }
    const drawn = picture(chart);
    if (button.dataset.save === 'svg') save(new Blob([drawn.svg], { type: 'image/svg+xml' }), name);
    else png(drawn, name);
  });
})();

'use strict';
/*
 * The flame graph. Nodes are flat arrays (a parent's index is smaller than its children's), the
 * picture is one canvas of the size of the window, and drawing descends only into what is wide
 * enough to be seen: a profile of a million nodes is as quick as one of a hundred.
 */
(() => {
  const profile = JSON.parse(document.getElementById('profile').textContent);
  const el = (id) => document.getElementById(id);
  const stage = el('stage'), canvas = el('canvas'), spacer = el('spacer'), tip = el('tip');
  const ctx = canvas.getContext('2d');
  const ROW = 20, PAD = 4;
  const KIND_UNKNOWN = 0, KIND_NATIVE = 1, KIND_PYTHON = 2, KIND_KERNEL = 3;
  const FLAG_JIT = 8, FLAG_TRUNCATED = 16, FLAG_GROUP = 1 << 16;

  /* ---- the tree ---------------------------------------------------------------------- */

  const functions = profile.functions, count = profile.nodes.parent.length;
  const parent = Int32Array.from(profile.nodes.parent), func = Int32Array.from(profile.nodes.func);
  const self = Float64Array.from(profile.nodes.self), total = Float64Array.from(self);
  const depth = new Int32Array(count), left = new Float64Array(count);
  const firstChild = new Int32Array(count + 1), children = new Int32Array(Math.max(count - 1, 0));
  let maxDepth = 0;

  /* Control characters and those that turn the direction of text would change what is beside a name. */
  functions.name = functions.name.map((name) => name.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd'));
  for (let i = count - 1; i > 0; i--) total[parent[i]] += total[i];
  for (let i = 1; i < count; i++) firstChild[parent[i] + 1]++;
  for (let i = 0; i < count; i++) firstChild[i + 1] += firstChild[i];
  {
    const next = Int32Array.from(firstChild);
    for (let i = 1; i < count; i++) children[next[parent[i]]++] = i;
  }
  const heavierFirst = (a, b) => total[b] - total[a] || (functions.name[func[a]] < functions.name[func[b]] ? -1 : 1);
  for (let i = 0; i < count; i++) {
    const kids = children.subarray(firstChild[i], firstChild[i + 1]);
    if (kids.length > 1) kids.sort(heavierFirst);
    let at = left[i];
    for (const kid of kids) {
      left[kid] = at;
      at += total[kid];
      depth[kid] = depth[i] + 1;
      if (depth[kid] > maxDepth) maxDepth = depth[kid];
    }
  }
  const all = total[0] || 1;

  const number = new Intl.NumberFormat('en');
  const percent = (part, whole) => {
    const share = whole ? 100 * part / whole : 0;
    return share.toFixed(share && share < 0.1 ? 3 : share < 10 ? 2 : 1) + ' %';
  };
  const nameOf = (node) => node ? functions.name[func[node]] : 'all';
  const moduleOf = (f) => profile.modules[functions.module[f]];

  /* ---- colours ----------------------------------------------------------------------- */

  let dark = false;
  const hash = (text) => {
    let h = 2166136261;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
    return (h >>> 8) / 0x1000000;
  };
  const kinds = {
    native: { label: 'native', hue: 16, spread: 24, chroma: 78 },
    inlined: { label: 'inlined', hue: 54, spread: 10, chroma: 72 },
    python: { label: 'Python', hue: 140, spread: 30, chroma: 42 },
    jit: { label: 'JIT', hue: 285, spread: 26, chroma: 42 },
    kernel: { label: 'kernel', hue: 208, spread: 22, chroma: 55 },
    group: { label: 'process or thread', hue: 230, spread: 0, chroma: 12 },
    unknown: { label: 'no name', hue: 30, spread: 0, chroma: 6 },
  };
  const classOf = (f) => {
    if (functions.flags[f] & FLAG_GROUP) return kinds.group;
    if (functions.flags[f] & FLAG_TRUNCATED) return kinds.unknown;
    switch (functions.kind[f]) {
      case KIND_KERNEL: return kinds.kernel;
      case KIND_PYTHON: return kinds.python;
      case KIND_UNKNOWN: return kinds.unknown;
    }
    if (functions.flags[f] & FLAG_JIT) return kinds.jit;
    return functions.inlined[f] ? kinds.inlined : kinds.native;
  };
  const colorOf = (kind, a, b) => {
    const hue = kind.hue + (a - 0.5) * kind.spread;
    return dark ? `hsl(${hue} ${kind.chroma * 0.62}% ${30 + b * 8}%)` : `hsl(${hue} ${kind.chroma}% ${68 + b * 10}%)`;
  };
  let fills = [];
  const paint = () => {
    fills = functions.name.map((name, f) => colorOf(classOf(f), hash(moduleOf(f) + '/'), hash(name)));
    legend();
  };
  const legend = () => {
    const used = new Set(functions.name.map((_, f) => classOf(f)));
    el('legend').replaceChildren(...Object.values(kinds).filter((k) => used.has(k)).map((kind) => {
      const item = document.createElement('span');
      item.textContent = kind.label;
      item.style.setProperty('--swatch', colorOf(kind, 0.5, 0.5));
      return item;
    }));
  };

  /* ---- state ------------------------------------------------------------------------- */

  let zoomed = 0, history = [], selected = 0, hovered = -1, flame = false;
  let view = { from: 0, to: all }, aim = view, animation = 0;
  let matches = null, matchList = [], matchAt = -1;
  let width = 0, height = 0, charWidth = 7;

  const remember = (key, value) => { try { localStorage.setItem('stackpulse.' + key, value); } catch { /* no storage */ } };
  const recall = (key) => { try { return localStorage.getItem('stackpulse.' + key); } catch { return null; } };

  const contentHeight = () => (maxDepth + 1) * ROW + 8;
  const rowTop = (d) => (flame ? Math.max(contentHeight(), height) - (d + 1) * ROW - 4 : d * ROW + 4) - stage.scrollTop;

  /* ---- drawing ----------------------------------------------------------------------- */

  let frameRequested = false;
  const redraw = () => {
    if (!frameRequested) {
      frameRequested = true;
      requestAnimationFrame(() => { frameRequested = false; draw(); });
    }
  };

  const label = (text, x, y, w) => {
    const room = Math.floor((w - 2 * PAD) / charWidth);
    if (room < 2) return;
    ctx.fillText(text.length > room ? text.slice(0, room - 1) + '\u2026' : text, x + PAD, y + ROW / 2);
  };

  const box = (node, x, y, w, palette) => {
    const f = node ? func[node] : -1, hit = matches && node && matches[f];
    ctx.globalAlpha = (matches && !hit) || (depth[node] < depth[zoomed]) ? 0.38 : 1;
    ctx.fillStyle = !node ? palette.root : hit ? palette.mark : fills[f];
    ctx.fillRect(x, y, w, ROW - 1);
    if (node && functions.flags[f] & FLAG_TRUNCATED) hatch(x, y, w, palette);
    ctx.fillStyle = hit ? palette.markInk : palette.ink;
    label(nameOf(node), x, y, w);
    ctx.globalAlpha = 1;
    if (node === selected || node === hovered) {
      ctx.strokeStyle = palette.ink;
      ctx.lineWidth = node === selected ? 2 : 1;
      ctx.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), ROW - 3);
    }
  };

  const hatch = (x, y, w, palette) => {
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, w, ROW - 1);
    ctx.clip();
    ctx.strokeStyle = palette.hatch;
    ctx.lineWidth = 1;
    for (let at = x - ROW; at < x + w; at += 7) {
      ctx.moveTo(at, y + ROW);
      ctx.lineTo(at + ROW, y);
    }
    ctx.stroke();
    ctx.restore();
  };

  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const palette = {
      back: style.getPropertyValue('--back'), ink: style.getPropertyValue('--ink'),
      mark: style.getPropertyValue('--mark'), markInk: dark ? '#200024' : '#ffffff',
      root: style.getPropertyValue('--line'), hatch: dark ? '#8888' : '#7778', rest: dark ? '#565a62' : '#cfc8be',
    };
    const scale = width / (view.to - view.from), stack = [0];
    ctx.fillStyle = palette.back;
    ctx.fillRect(0, 0, width, height);
    ctx.font = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
    ctx.textBaseline = 'middle';
    charWidth = ctx.measureText('MMMMMMMMMM').width / 10;
    while (stack.length) {
      const node = stack.pop(), y = rowTop(depth[node]);
      const from = Math.max((left[node] - view.from) * scale, 0);
      const to = Math.min((left[node] + total[node] - view.from) * scale, width);
      const gone = flame ? y + ROW < 0 : y > height;
      if (gone || to <= from) continue;
      if (y + ROW >= 0 && y <= height) box(node, from, y, Math.max(to - from - (to - from > 3 ? 1 : 0), 0.5), palette);
      const end = firstChild[node + 1];
      for (let i = firstChild[node]; i < end; i++) {
        const kid = children[i];
        if (left[kid] > view.to) break;
        if (total[kid] * scale < 0.7) {
          rest(node, kid, scale, palette);
          break;
        }
        if (left[kid] + total[kid] > view.from) stack.push(kid);
      }
    }
  };

  /* What is too narrow to be drawn one by one: the lightest children, which are the last. */
  const rest = (node, kid, scale, palette) => {
    const y = rowTop(depth[kid]);
    const from = Math.max((left[kid] - view.from) * scale, 0);
    const to = Math.min((left[node] + total[node] - self[node] - view.from) * scale, width);
    if (to - from < 0.5 || y + ROW < 0 || y > height) return;
    ctx.globalAlpha = 0.5;
    ctx.fillStyle = palette.rest;
    ctx.fillRect(from, y, to - from, ROW - 1);
    ctx.globalAlpha = 1;
  };

  const resize = () => {
    const ratio = window.devicePixelRatio || 1;
    width = stage.clientWidth;
    height = stage.clientHeight;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + 'px';
    canvas.style.height = height + 'px';
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    spacer.style.height = Math.max(contentHeight() - height, 0) + 'px';
    draw();
  };

  /* ---- moving ------------------------------------------------------------------------ */

  const calm = matchMedia('(prefers-reduced-motion: reduce)');
  const show = (from, to) => {
    const start = performance.now(), begin = view;
    aim = { from, to };
    cancelAnimationFrame(animation);
    if (calm.matches || document.hidden) {
      view = aim;
      redraw();
      return;
    }
    const step = (now) => {
      const t = Math.min(Math.max((now - start) / 160, 0), 1), ease = 1 - (1 - t) ** 3;
      view = t === 1 ? aim : {
        from: begin.from + (aim.from - begin.from) * ease,
        to: begin.to + (aim.to - begin.to) * ease,
      };
      draw();
      if (t < 1) animation = requestAnimationFrame(step);
    };
    animation = requestAnimationFrame(step);
  };

  const reveal = (node) => {
    const y = rowTop(depth[node]);
    if (y < ROW) stage.scrollTop += y - ROW;
    else if (y > height - 2 * ROW) stage.scrollTop += y - height + 2 * ROW;
  };

  const zoomTo = (node, back) => {
    if (!back && node !== zoomed) history.push(zoomed);
    zoomed = node;
    select(node);
    el('reset').disabled = node === 0;
    show(left[node], left[node] + (total[node] || 1));
    countMatches();
  };
  const zoomOut = () => {
    if (history.length) zoomTo(history.pop(), true);
    else zoomTo(0, true);
  };
  const reset = () => {
    history = [];
    zoomTo(0, true);
    show(0, all);
  };

  const inView = (node) => zoomed && depth[node] > depth[zoomed] &&
    left[node] >= left[zoomed] && left[node] < left[zoomed] + total[zoomed];
  const describe = (node) => {
    const text = `${nameOf(node)}  \u2014  ${number.format(total[node])} samples, ${percent(total[node], all)}` +
      (self[node] ? `, self ${percent(self[node], all)}` : '');
    return inView(node) ? `${text}, ${percent(total[node], total[zoomed])} of the view` : text;
  };
  const select = (node) => {
    selected = node;
    el('detail').textContent = describe(node);
    reveal(node);
    redraw();
  };

  const nodeAt = (x, y) => {
    const row = flame ? Math.floor((Math.max(contentHeight(), height) - 4 - y - stage.scrollTop) / ROW) : Math.floor((y - 4 + stage.scrollTop) / ROW);
    const at = view.from + x / width * (view.to - view.from);
    let node = 0;
    if (row < 0 || row > maxDepth) return -1;
    while (depth[node] < row) {
      let low = firstChild[node], high = firstChild[node + 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (left[children[middle]] + total[children[middle]] > at) high = middle;
        else low = middle + 1;
      }
      if (low === firstChild[node + 1] || left[children[low]] > at) return -1;
      node = children[low];
    }
    return node;
  };

  /* ---- search ------------------------------------------------------------------------ */

  const matcher = (text) => {
    const regex = /^\/(.+?)\/?$/.exec(text);
    if (!regex) {
      const wanted = text.toLowerCase();
      return (name) => name.toLowerCase().includes(wanted);
    }
    const expression = new RegExp(regex[1], 'i');
    return (name) => expression.test(name);
  };
  const search = (text) => {
    const output = el('matched');
    output.classList.remove('bad');
    matches = null;
    matchList = [];
    matchAt = -1;
    if (text && text !== '/') {
      try {
        const test = matcher(text);
        matches = Uint8Array.from(functions.name, (name) => test(name) ? 1 : 0);
      } catch {
        output.classList.add('bad');
        output.textContent = 'not a regex';
        redraw();
        return;
      }
    }
    countMatches();
    redraw();
  };
  /* Outermost matches within the view; a match inside of a match does not count twice. */
  const countMatches = () => {
    const stack = [zoomed];
    let sum = 0;
    matchList = [];
    if (!matches) {
      el('matched').textContent = '';
      return;
    }
    while (stack.length) {
      const node = stack.pop();
      if (node && matches[func[node]]) {
        sum += total[node];
        matchList.push(node);
        continue;
      }
      for (let i = firstChild[node]; i < firstChild[node + 1]; i++) stack.push(children[i]);
    }
    matchList.sort((a, b) => total[b] - total[a]);
    el('matched').textContent = percent(sum, total[zoomed] || 1);
    el('matched').title = `${number.format(sum)} samples in ${number.format(matchList.length)} places`;
  };
  const nextMatch = (step) => {
    if (!matchList.length) return;
    matchAt = (matchAt + step + matchList.length) % matchList.length;
    select(matchList[matchAt]);
  };

  /* ---- the tip ----------------------------------------------------------------------- */

  const line = (tag, text) => {
    const node = document.createElement(tag);
    node.textContent = text;
    return node;
  };
  const shares = (rows) => {
    const table = document.createElement('table');
    for (const cells of rows) {
      const row = table.insertRow();
      cells.forEach((cell, i) => {
        const td = row.insertCell();
        td.textContent = cell;
        if (i) td.className = 'number';
      });
    }
    return table;
  };
  const showTip = (node, x, y) => {
    const f = func[node], parts = [line('strong', nameOf(node))];
    if (node) {
      if (moduleOf(f)) parts.push(line('span', moduleOf(f) + (functions.inlined[f] ? ', inlined' : '')));
      if (functions.file[f]) parts.push(line('span', functions.file[f]));
      if (functions.flags[f] & FLAG_TRUNCATED) parts.push(line('span', 'The callers of these stacks are missing: they were cut while recording.'));
    }
    const rows = [
      ['total', number.format(total[node]), percent(total[node], all)],
      ['self', number.format(self[node]), percent(self[node], all)],
    ];
    if (inView(node)) rows.push(['of the view', '', percent(total[node], total[zoomed])]);
    if (node && functions.total[f] !== total[node]) rows.push(['function, all places', number.format(functions.total[f]), percent(functions.total[f], all)]);
    parts.push(shares(rows));
    tip.replaceChildren(...parts);
    tip.hidden = false;
    const space = tip.getBoundingClientRect();
    tip.style.left = Math.max(Math.min(x + 14, innerWidth - space.width - 8), 4) + 'px';
    tip.style.top = (y + 22 + space.height > innerHeight ? Math.max(y - space.height - 10, 4) : y + 22) + 'px';
  };
  const hover = (node) => {
    if (node === hovered) return;
    hovered = node;
    stage.classList.toggle('over', node >= 0);
    redraw();
  };

  /* ---- the list of functions --------------------------------------------------------- */

  let byTotal = false;
  const fillList = () => {
    const key = byTotal ? functions.total : functions.self;
    const order = functions.name.map((_, f) => f).sort((a, b) => key[b] - key[a]).filter((f) => key[f] && !(functions.flags[f] & FLAG_GROUP)).slice(0, 300);
    el('by-self').setAttribute('aria-pressed', !byTotal);
    el('by-total').setAttribute('aria-pressed', byTotal);
    el('rows').replaceChildren(...order.map((f) => {
      const row = document.createElement('tr');
      for (const share of [functions.self[f], functions.total[f]]) {
        const cell = row.insertCell();
        cell.className = 'number';
        cell.textContent = percent(share, all);
      }
      const cell = row.insertCell();
      cell.append(functions.name[f] + ' ', line('small', moduleOf(f)));
      row.tabIndex = 0;
      const pick = () => {
        const text = functions.name[f];
        el('search').value = text;
        search(text);
        nextMatch(1);
      };
      row.addEventListener('click', pick);
      row.addEventListener('keydown', (event) => { if (event.key === 'Enter') pick(); });
      return row;
    }));
  };
  const toggleList = () => {
    const panel = el('panel');
    panel.hidden = !panel.hidden;
    el('list').setAttribute('aria-pressed', !panel.hidden);
    if (!panel.hidden) fillList();
    resize();
  };

  /* ---- controls ---------------------------------------------------------------------- */

  const setTheme = (wanted) => {
    dark = wanted;
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    el('theme').textContent = dark ? 'Light' : 'Dark';
    paint();
    redraw();
  };
  const toggleTheme = () => {
    setTheme(!dark);
    remember('theme', dark ? 'dark' : 'light');
  };
  const setFlame = (wanted) => {
    flame = wanted;
    el('turn').textContent = flame ? 'Icicle' : 'Flame';
    resize();
    stage.scrollTop = flame ? stage.scrollHeight : 0;
    reveal(selected);
    redraw();
  };
  const toggleFlame = () => {
    setFlame(!flame);
    remember('flame', flame ? '1' : '0');
  };
  const toggleHelp = () => el('keys').open ? el('keys').close() : el('keys').showModal();

  const sibling = (step) => {
    const p = parent[selected];
    if (!selected) return selected;
    for (let i = firstChild[p]; i < firstChild[p + 1]; i++)
      if (children[i] === selected) {
        const next = i + step;
        return next >= firstChild[p] && next < firstChild[p + 1] ? children[next] : selected;
      }
    return selected;
  };
  const outwards = () => select(selected ? parent[selected] : 0);
  const inwards = () => { if (firstChild[selected] < firstChild[selected + 1]) select(children[firstChild[selected]]); };
  const clearSearch = () => {
    el('search').value = '';
    search('');
    stage.focus();
  };
  const commands = {
    ArrowUp: () => flame ? inwards() : outwards(),
    ArrowDown: () => flame ? outwards() : inwards(),
    ArrowLeft: () => select(sibling(-1)),
    ArrowRight: () => select(sibling(1)),
    Enter: () => zoomTo(selected),
    Escape: () => matches && !zoomed ? clearSearch() : zoomOut(),
    Backspace: zoomOut,
    '/': () => { el('search').focus(); el('search').select(); },
    n: () => nextMatch(1),
    N: () => nextMatch(-1),
    0: reset,
    Home: reset,
    i: toggleFlame,
    f: toggleList,
    t: toggleTheme,
    '?': toggleHelp,
  };
  document.addEventListener('keydown', (event) => {
    const inControl = /^(INPUT|BUTTON|TR)$/.test(document.activeElement.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey || el('keys').open) return;
    if (document.activeElement === el('search') || (inControl && /^(Enter| )$/.test(event.key))) return;
    const command = commands[event.key];
    if (!command) return;
    event.preventDefault();
    tip.hidden = true;
    command();
  });
  el('search').addEventListener('input', (event) => search(event.target.value.trim()));
  el('search').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      event.preventDefault();
      nextMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === 'Escape') {
      event.preventDefault();
      clearSearch();
    }
  });
  el('reset').addEventListener('click', reset);
  el('turn').addEventListener('click', toggleFlame);
  el('theme').addEventListener('click', toggleTheme);
  el('list').addEventListener('click', toggleList);
  el('help').addEventListener('click', toggleHelp);
  el('by-self').addEventListener('click', () => { byTotal = false; fillList(); });
  el('by-total').addEventListener('click', () => { byTotal = true; fillList(); });

  let drag = null;
  const point = (event) => {
    const area = canvas.getBoundingClientRect();
    return [event.clientX - area.left, event.clientY - area.top];
  };
  const panTo = (from, span) => {
    const begin = Math.max(0, Math.min(from, all - span));
    cancelAnimationFrame(animation);
    view = aim = { from: begin, to: begin + span };
    el('reset').disabled = span >= all && !zoomed;
    redraw();
  };
  stage.addEventListener('pointerdown', (event) => {
    if (event.button === 0 && event.target === canvas) drag = { x: event.clientX, from: view.from, moved: false };
  });
  addEventListener('pointermove', (event) => {
    if (!drag || !(event.buttons & 1)) return;
    if (Math.abs(event.clientX - drag.x) > 4) drag.moved = true;
    if (!drag.moved) return;
    const span = view.to - view.from;
    stage.classList.add('dragging');
    tip.hidden = true;
    panTo(drag.from - (event.clientX - drag.x) / width * span, span);
  });
  addEventListener('pointerup', (event) => {
    const wasDrag = drag && drag.moved;
    stage.classList.remove('dragging');
    if (drag && !wasDrag && event.target === canvas) {
      const node = nodeAt(...point(event));
      stage.focus({ preventScroll: true });
      if (node >= 0) node === 0 ? reset() : zoomTo(node);
    }
    drag = null;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (drag && drag.moved) return;
    const node = nodeAt(...point(event));
    hover(node);
    if (node >= 0) showTip(node, event.clientX, event.clientY);
    else tip.hidden = true;
  });
  canvas.addEventListener('pointerleave', () => { hover(-1); tip.hidden = true; });
  stage.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    const span = view.to - view.from, x = point(event)[0] / width;
    if (event.shiftKey && !event.ctrlKey) {
      panTo(view.from + (event.deltaY || event.deltaX) / width * span, span);
      return;
    }
    const wanted = Math.min(Math.max(span * Math.exp(event.deltaY * 0.002), Math.min(1, all)), all);
    panTo(view.from + (span - wanted) * x, wanted);
  }, { passive: false });
  stage.addEventListener('scroll', () => { tip.hidden = true; redraw(); });
  new ResizeObserver(resize).observe(stage);

  /* ---- start ------------------------------------------------------------------------- */

  const summary = () => {
    const p = profile.meta, parts = [`${number.format(p.samples)} samples`];
    const duration = p.duration_ns / 1e9;
    if (duration) parts.push(duration < 120 ? `${duration.toFixed(1)} s` : `${Math.round(duration / 60)} min`);
    parts.push(`${number.format(p.processes)} process${p.processes === 1 ? '' : 'es'}`);
    parts.push(`${number.format(p.threads)} thread${p.threads === 1 ? '' : 's'}`);
    el('summary').textContent = parts.join(' \u00b7 ');
    if (p.truncated_samples) {
      el('summary').append(' \u00b7 ', line('b', `${percent(p.truncated_samples, p.samples)} of the stacks are cut`));
    }
    if (p.recovered) el('summary').append(' \u00b7 ', line('b', 'the recording was cut off'));
  };
  el('title').textContent = profile.title;
  el('title').title = profile.title;
  summary();
  const theme = recall('theme');
  setTheme(theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches);
  setFlame(recall('flame') === '1');
  select(0);
  stage.focus({ preventScroll: true });
})();

// What is on the timeline and where: two panes with a scale each, and the rows in them. Nothing here draws.

const rowHeight = 19, headHeight = 24, chartHeight = 34, axisHeight = 22, splitHeight = 7;

// "stream 'copies' on device 0" stands below its card already.
function streamLabel(name, number) {
  if (name.startsWith("a stream")) return `stream ${number}`;
  const short = name.replace(/ on device \d+$/, "");
  return short.match(/^stream '(.*)'$/)?.[1] || short || "stream";
}

// A pane's times are in its own unit, nanoseconds of the host or picoseconds of the model.
class Pane {
  constructor(name, title, psPerUnit, end) {
    Object.assign(this, { name, title, psPerUnit, end: Math.max(end, 10), top: 0, height: 0, scroll: 0, items: [], contentHeight: 0 });
    this.fit();
  }
  fit() {
    this.begin = -this.end * 0.01;
    this.span = this.end * 1.02;
  }
  clamp() {
    this.span = Math.min(Math.max(this.span, 20 / this.psPerUnit), this.end * 1.5);
    this.begin = Math.min(Math.max(this.begin, -this.span * 0.9), this.end - this.span * 0.1);
    this.scroll = Math.min(Math.max(this.scroll, 0), Math.max(0, this.contentHeight - this.rowsHeight));
  }
  get rowsHeight() { return Math.max(0, this.height - axisHeight); }
  get rowsTop() { return this.top + axisHeight; }
  show(begin, span) {
    this.begin = begin;
    this.span = span;
    this.clamp();
  }
  zoom(factor, at) {
    const span = this.span;
    this.span = span / factor;
    this.clamp();
    this.begin = at - ((at - this.begin) / span) * this.span;
    this.clamp();
  }
  pan(time) { this.begin += time; this.clamp(); }
}

class View {
  constructor(profile) {
    this.profile = profile;
    this.width = 0;
    this.height = 0;
    this.names = 170; // the width of the names
    this.share = 0; // of the host's pane; 0: by what is in it
    this.folded = new Set();
    this.known = new Set(); // what was folded or not already
    this.selected = -1;
    this.hovered = -1;
    this.range = null; // {pane, begin, end}
    this.allArrows = false;
    this.matches = null; // Uint8Array by text
    this.matchSums = null; // with it: how many slices before each have such a name
    let hostEnd = 0, modelEnd = 0;
    for (const row of profile.rows) {
      const end = row.count > 0 ? profile.end[row.first + row.count - 1] : 0;
      if (row.track.onCard) modelEnd = Math.max(modelEnd, end);
      else hostEnd = Math.max(hostEnd, end);
    }
    for (const set of profile.samples) modelEnd = Math.max(modelEnd, set.times[set.count - 1]);
    for (const one of profile.memory) hostEnd = Math.max(hostEnd, one.times[one.count - 1]);
    this.host = new Pane("host", "Host time", 1000, hostEnd);
    this.model = new Pane("model", "Model time", 1, modelEnd);
    this.active = modelEnd > 0 ? this.model : this.host;
    this.layOut();
  }
  get panes() { return [this.host, this.model].filter((pane) => pane.items.length > 0); }

  // Which rows there are, for what is folded and what is not.
  layOut() {
    const { profile } = this;
    const add = (pane, item) => {
      const height = item.type === "head" ? headHeight : item.type === "chart" ? chartHeight : rowHeight;
      pane.items.push({ ...item, y: pane.contentHeight, height });
      pane.contentHeight += height;
    };
    for (const pane of [this.host, this.model]) {
      pane.items = [];
      pane.contentHeight = 0;
    }
    const addTrack = (pane, track, label) =>
      track.rows.forEach((row, i) => add(pane, { type: "row", row, label: i === 0 ? label : "" }));
    profile.processes.forEach((process, number) => {
      const tracks = profile.tracks.filter((track) => track.process === number);
      const threads = tracks.filter((track) => !track.onCard);
      if (threads.length > 0) {
        const key = `process ${number}`;
        add(this.host, { type: "head", key, label: `Process ${processTitle(process)}`, more: profile.texts[process.command] });
        if (!this.folded.has(key)) {
          for (const track of threads) {
            const domain = track.domain === undefined ? "" : `${profile.texts[track.domain]}, `;
            addTrack(this.host, track, track.beside ? profile.texts[track.title] : `${domain}thread ${track.thread}`);
          }
          for (const one of profile.memory) {
            if (one.process !== number) continue;
            add(this.host, { type: "chart", chart: "memory", memory: one,
              label: one.device < 0 ? "pinned memory" : `memory, card ${one.device}` });
          }
        }
      }
      for (const device of profile.devices) {
        if (device.process !== number) continue;
        const key = `card ${number} ${device.device}`;
        const streams = tracks.filter((track) => track.isWork && track.device === device.device);
        const sampled = profile.samples.filter((set) => set.process === number && set.device === device.device);
        if (streams.length === 0 && sampled.length === 0) continue;
        const rows = streams.flatMap((track) => track.rows);
        add(this.model, { type: "head", key, label: `Card ${device.device}`,
          more: (profile.processes.length > 1 ? `process ${processTitle(process)}  ` : "") +
            (device.sku === undefined ? "" : profile.texts[device.sku]) });
        if (this.folded.has(key)) continue;
        for (const [name, label, sums, kinds] of [
          ["vector", "vector cores", profile.kernelSums, [Kind.kernel, Kind.kernel]],
          ["copy", "copy engines", profile.copySums, [Kind.copy, Kind.fill]]]) {
          if (device[name].count === 0) continue;
          add(this.model, { type: "chart", chart: "engine", engine: name, label, rows, sums, kinds, most: device[name].most });
        }
        for (const track of streams) addTrack(this.model, track, streamLabel(profile.texts[track.name], track.stream));
        for (const track of tracks)
          if (track.beside && track.device === device.device) addTrack(this.model, track, profile.texts[track.title]);
        this.addCounters(add, sampled, `counters ${number} ${device.device}`);
      }
    });
    this.place();
  }

  // Those that counted anything; many are folded at first.
  addCounters(add, sets, key) {
    const counters = sets.flatMap((set) => set.counters.filter(({ values }) => values[values.length - 1] !== values[0])
      .map((counter) => ({ set, counter })));
    if (counters.length === 0) return;
    if (!this.known.has(key) && counters.length > 8) this.folded.add(key);
    this.known.add(key);
    add(this.model, { type: "head", key, label: "Counters", more: `${counters.length} sampled` });
    if (this.folded.has(key)) return;
    for (const { set, counter } of counters)
      add(this.model, { type: "chart", chart: "counter", set, counter, label: this.profile.texts[counter.name] });
  }

  resize(width, height) {
    this.width = width;
    this.height = height;
    this.names = width < 520 ? 84 : width < 900 ? 130 : 180;
    this.place();
  }
  // How the panes share the height.
  place() {
    const panes = this.panes;
    if (panes.length === 0) return;
    let top = 0;
    if (panes.length === 2) {
      const room = this.height - splitHeight;
      const wanted = this.host.contentHeight + axisHeight + 4;
      const share = this.share > 0 ? this.share * room : Math.min(wanted, room * 0.42);
      this.host.height = Math.round(Math.min(Math.max(share, axisHeight), room - axisHeight));
      this.host.top = 0;
      top = this.host.height + splitHeight;
    }
    const last = panes[panes.length - 1];
    last.top = top;
    last.height = this.height - top;
    for (const pane of panes) pane.clamp();
  }

  get tracksWidth() { return Math.max(1, this.width - this.names); }
  x(pane, time) { return this.names + ((time - pane.begin) / pane.span) * this.tracksWidth; }
  time(pane, x) { return pane.begin + ((x - this.names) / this.tracksWidth) * pane.span; }
  paneAt(y) { return this.panes.find((pane) => y >= pane.top && y < pane.top + pane.height); }
  paneOf(slice) { return slice >= this.profile.firstWork ? this.model : this.host; }
  // The part of the timeline at a point: {pane, part: "scale", "names" or "tracks", item}, or the split.
  at(x, y) {
    const pane = this.paneAt(y);
    if (!pane) return { part: "split" };
    if (y < pane.rowsTop) return { pane, part: "scale" };
    const inside = y - pane.rowsTop + pane.scroll;
    const item = pane.items.find((one) => inside >= one.y && inside < one.y + one.height);
    return { pane, item, part: x < this.names ? "names" : "tracks" };
  }
  // The slice at a point, or one within two pixels of it; -1: none.
  sliceAt(x, y) {
    const { pane, item, part } = this.at(x, y);
    if (part !== "tracks" || !item || item.type !== "row") return -1;
    const { begin, end } = this.profile;
    const { first, count } = item.row;
    const at = this.time(pane, x), near = (2.5 / this.tracksWidth) * pane.span;
    const last = firstAbove(begin, first, first + count, at + near, false) - 1;
    let best = -1, distance = near;
    for (let i = last; i >= first && i > last - 50; i--) {
      const away = Math.max(begin[i] - at, at - end[i], 0);
      if (away < distance || (away === 0 && best < 0)) {
        best = i;
        distance = away;
      }
      if (away === 0 || at - end[i] > near) break;
    }
    return best;
  }
  itemOf(slice) {
    const row = rowOfSlice(this.profile, slice);
    return this.paneOf(slice).items.find((item) => item.row === row);
  }
  // Where a slice is drawn: {x, y, width}, or null if its row is folded. It may be out of sight.
  boxOf(slice) {
    const pane = this.paneOf(slice), item = this.itemOf(slice);
    if (!item) return null;
    const x = this.x(pane, this.profile.begin[slice]);
    return { pane, x, y: pane.rowsTop + item.y - pane.scroll, width: this.x(pane, this.profile.end[slice]) - x };
  }

  // Scrolls and zooms as little as is needed for the slice to be seen.
  reveal(slice, zoomed) {
    const pane = this.paneOf(slice);
    const { begin, end } = this.profile;
    if (!this.itemOf(slice)) {
      const { track } = rowOfSlice(this.profile, slice);
      this.folded.delete(track.onCard ? `card ${track.process} ${track.device}` : `process ${track.process}`);
      this.layOut();
    }
    const item = this.itemOf(slice);
    const time = end[slice] - begin[slice];
    const pixels = (time / pane.span) * this.tracksWidth;
    // One that is longer than the pane is, where its middle is.
    const [from, until] = time < pane.span ? [begin[slice], end[slice]]
      : [begin[slice] + time / 2, begin[slice] + time / 2];
    const inSight = from >= pane.begin && until <= pane.begin + pane.span;
    if (zoomed) pane.show(begin[slice] - time * 0.6, Math.max(time * 2.2, 20));
    else if (pixels < 3 && time > 0) pane.show(begin[slice] - time * 20, time * 41);
    else if (!inSight) pane.show(begin[slice] + time / 2 - pane.span / 2, pane.span);
    if (item.y < pane.scroll) pane.scroll = item.y;
    if (item.y + item.height > pane.scroll + pane.rowsHeight) pane.scroll = item.y + item.height - pane.rowsHeight;
    pane.clamp();
    this.active = pane;
  }
  fit() { for (const pane of this.panes) pane.fit(); }

  // Slices beside the selected one: -1 before it, 1 behind it, in its row.
  neighbour(slice, step) {
    const row = rowOfSlice(this.profile, slice);
    const next = slice + step;
    return next >= row.first && next < row.first + row.count ? next : slice;
  }
  // In the next row that has any, the one nearest in time.
  nextRow(slice, step) {
    const { begin, end } = this.profile;
    const pane = this.paneOf(slice);
    const rows = pane.items.filter((item) => item.type === "row").map((item) => item.row);
    const row = rows[rows.indexOf(rowOfSlice(this.profile, slice)) + step];
    if (!row) return slice;
    const middle = (begin[slice] + end[slice]) / 2;
    const found = firstAbove(begin, row.first, row.first + row.count, middle, false) - 1;
    return Math.min(Math.max(found, row.first), row.first + row.count - 1);
  }

  // All slices of the rows of a pane that meet a span of time, added up by name; and how busy engines were.
  sums(pane, begin, end) {
    const { profile } = this;
    const byName = new Map();
    let count = 0;
    for (const row of profile.rows) {
      if (row.track.beside || (pane === this.model) !== row.track.isWork) continue;
      const last = row.first + row.count;
      for (let i = firstAbove(profile.end, row.first, last, begin, false); i < last && profile.begin[i] < end; i++) {
        const time = Math.min(profile.end[i], end) - Math.max(profile.begin[i], begin);
        const key = profile.name[i] * 16 + profile.kind[i];
        const sum = byName.get(key);
        if (sum) {
          sum.count++;
          sum.time += time;
        } else byName.set(key, { name: profile.name[i], kind: profile.kind[i], count: 1, time });
        count++;
      }
    }
    const names = [...byName.values()].sort((a, b) => b.time - a.time);
    const engines = pane.items.filter((item) => item.chart === "engine").map((item) => ({
      label: item.label, most: item.most, item,
      average: (this.workUntil(item, end) - this.workUntil(item, begin)) / (end - begin) }));
    return { count, names, engines };
  }
  // Engine time of an engine until a moment: its slope is how much ran at once.
  workUntil(item, time) {
    let all = 0;
    for (const row of item.rows) all += this.workOfRow(item, row, time, row.first, row.first + row.count).time;
    return all;
  }
  // The same of one row. `from` and `to` are known to be around the moment; `next` is the first slice behind it.
  workOfRow(item, row, time, from, to) {
    const { profile } = this;
    const next = firstAbove(profile.begin, from, to, time, false);
    const offset = profile.firstWork;
    let sum = item.sums[next - offset] - item.sums[row.first - offset];
    if (next > row.first) {
      const kind = profile.kind[next - 1];
      if ((kind === item.kinds[0] || kind === item.kinds[1]) && profile.end[next - 1] > time)
        sum -= profile.end[next - 1] - time;
    }
    return { time: sum, next };
  }
}

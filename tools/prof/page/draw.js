// Draws the timeline. Nothing is drawn twice: where many slices share a pixel, one stands for all of them.

// Neither red, which is failure, nor the colour of copies.
const kernelHues = [212, 268, 322, 40, 84, 128, 240, 296, 54, 196];
class Colours {
  constructor(dark) {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    Object.assign(this, { dark, ground: of("--ground"), raised: of("--raised"), line: of("--line"), text: of("--text"),
      quiet: of("--quiet"), accent: of("--accent"), soft: of("--accent-soft"), bad: of("--bad") });
    const fill = (hue, saturation, lightness) => `hsl(${hue} ${saturation}% ${lightness}%)`;
    this.kernels = kernelHues.map((hue) => (dark ? fill(hue, 55, 66) : fill(hue, 72, 79)));
    this.calls = kernelHues.map((hue) => (dark ? fill(hue, 20, 60) : fill(hue, 34, 87)));
    this.copy = dark ? fill(176, 45, 56) : fill(176, 48, 70);
    this.fill = dark ? fill(70, 38, 58) : fill(70, 52, 74);
    this.wait = dark ? fill(220, 10, 68) : fill(220, 12, 84);
    this.range = dark ? fill(212, 28, 68) : fill(212, 48, 84);
    this.failed = dark ? "#ff8a80" : "#f3a29b";
    this.onSlice = "#10161d";
  }
  of(kind, name, failed) {
    if (failed) return this.failed;
    switch (kind) {
      case Kind.kernel: case Kind.other: return this.kernels[(name * 7) % this.kernels.length];
      case Kind.copy: case Kind.linkCopy: return this.copy;
      case Kind.fill: return this.fill;
      case Kind.wait: return this.wait;
      case Kind.range: case Kind.openRange: return this.range;
      default: return this.calls[(name * 7) % this.calls.length];
    }
  }
}

class Painter {
  constructor(canvas, view) {
    this.canvas = canvas;
    this.view = view;
    this.context = canvas.getContext("2d", { alpha: false });
    this.frames = 0;
    this.waiting = false;
    this.submissions = null;
  }
  get arrows() { return (this.submissions ||= new Submissions(this.view.profile)); }

  invalidate() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }
  setTheme(dark) {
    this.colours = new Colours(dark);
    this.invalidate();
  }
  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.view.resize(width, height);
    this.invalidate();
  }

  paint() {
    const { context, view, colours } = this;
    if (view.width === 0 || view.height === 0) return;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.fillStyle = colours.ground;
    context.fillRect(0, 0, view.width, view.height);
    context.textBaseline = "middle";
    context.direction = "ltr";
    this.font = "11.5px system-ui, 'Segoe UI', 'Noto Sans', 'DejaVu Sans', sans-serif";
    context.font = this.font;
    this.letter = this.letter || context.measureText("orrStreamSynchronize 0123").width / 25;
    for (const pane of view.panes) this.paintPane(pane);
    if (view.panes.length === 2) this.paintSplit();
    this.paintArrows();
    this.frames++;
  }

  clipped(x, y, width, height, draw) {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  paintPane(pane) {
    const { context, view, colours } = this;
    this.clipped(0, pane.top, view.width, pane.height, () => {
      this.paintScale(pane);
      this.clipped(0, pane.rowsTop, view.width, pane.rowsHeight, () => {
        const seen = pane.items.filter((item) => item.y + item.height > pane.scroll && item.y < pane.scroll + pane.rowsHeight);
        for (const item of seen) {
          const y = pane.rowsTop + item.y - pane.scroll;
          if (item.type === "head") {
            context.fillStyle = colours.raised;
            context.fillRect(0, y, view.width, item.height);
            context.fillStyle = colours.line;
            context.fillRect(0, y + item.height - 1, view.width, 1);
          }
        }
        this.clipped(view.names, pane.rowsTop, view.tracksWidth, pane.rowsHeight, () => {
          this.paintGrid(pane);
          for (const item of seen) {
            const y = pane.rowsTop + item.y - pane.scroll;
            if (item.type === "row") this.paintRow(pane, item.row, y + 1, item.height - 2);
            else if (item.type === "chart") this.paintChart(pane, item, y + 3, item.height - 6);
          }
          this.paintRange(pane);
          this.paintMarks(pane);
        });
        context.fillStyle = colours.line;
        context.fillRect(view.names - 1, pane.rowsTop, 1, pane.rowsHeight);
        for (const item of seen) this.paintName(item, pane.rowsTop + item.y - pane.scroll);
        this.paintScrollBar(pane);
      });
    });
  }

  paintScrollBar(pane) {
    if (pane.contentHeight <= pane.rowsHeight) return;
    const scale = pane.rowsHeight / pane.contentHeight;
    this.context.fillStyle = this.colours.quiet;
    this.context.globalAlpha = 0.5;
    this.context.fillRect(this.view.width - 5, pane.rowsTop + pane.scroll * scale, 4, pane.rowsHeight * scale);
    this.context.globalAlpha = 1;
  }

  paintName(item, y) {
    const { context, view, colours } = this;
    const head = item.type === "head";
    if (!head) {
      context.fillStyle = colours.ground;
      context.fillRect(0, y, view.names - 1, item.height);
    }
    if (!item.label && !head) return;
    const middle = y + item.height / 2 + 0.5;
    context.fillStyle = head ? colours.text : colours.quiet;
    let left = 12;
    if (head) {
      context.font = `600 ${this.font}`;
      this.text(view.folded.has(item.key) ? "▸" : "▾", 4, middle, 20);
      left = 18;
    }
    this.text(item.label, left, middle, (head ? 180 : view.names - 6) - left);
    if (head) {
      const width = context.measureText(item.label).width;
      context.font = this.font;
      context.fillStyle = colours.quiet;
      this.text(item.more || "", left + width + 10, middle, view.width - left - width - 20);
    }
  }
  // As much of a text as there is room for.
  text(text, x, y, room) {
    const letters = Math.floor(room / this.letter);
    if (letters < 2) return;
    this.context.fillText(short(text, letters), x, y, room);
  }

  // Steps of 1, 2 or 5 of a power of ten, wide enough for their text.
  step(pane) {
    const least = (pane.span / this.view.tracksWidth) * 105;
    const power = 10 ** Math.floor(Math.log10(least));
    return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least);
  }
  ticks(pane, draw) {
    const step = this.step(pane);
    for (let n = Math.ceil(pane.begin / step); n * step < pane.begin + pane.span; n++)
      draw(Math.round(this.view.x(pane, n * step)) + 0.5, n * step, step);
  }
  paintScale(pane) {
    const { context, view, colours } = this;
    context.fillStyle = colours.raised;
    context.fillRect(0, pane.top, view.width, axisHeight);
    context.fillStyle = colours.line;
    context.fillRect(0, pane.rowsTop - 1, view.width, 1);
    context.fillStyle = colours.text;
    const middle = pane.top + axisHeight / 2;
    context.font = `600 ${this.font}`;
    this.text(pane.title, 8, middle, view.names - 10);
    context.font = this.font;
    context.fillStyle = colours.quiet;
    this.clipped(view.names, pane.top, view.tracksWidth, axisHeight, () => {
      this.ticks(pane, (x, time, step) => {
        context.fillRect(x - 0.5, pane.top + axisHeight - 6, 1, 5);
        context.fillText(tickText(time * pane.psPerUnit, step * pane.psPerUnit), x + 4, middle);
      });
    });
  }
  paintGrid(pane) {
    this.context.fillStyle = this.colours.line;
    this.context.globalAlpha = 0.45;
    this.ticks(pane, (x) => this.context.fillRect(x - 0.5, pane.rowsTop, 1, pane.rowsHeight));
    this.context.globalAlpha = 1;
  }

  // A row. `strength` of a pixel that many slices share is how much of it they fill.
  paintRow(pane, row, y, height) {
    const { context, view, colours } = this;
    const { begin, end, name, kind, status, sums } = view.profile;
    const perUnit = view.tracksWidth / pane.span, perPixel = pane.span / view.tracksWidth;
    const last = row.first + row.count;
    const { matches } = view;
    let i = firstAbove(end, row.first, last, pane.begin, true);
    const until = pane.begin + pane.span;
    // Runs of pixels that look alike are one rectangle.
    let runX = 0, runEnd = -1, runFill = "", runAlpha = 1;
    const flush = () => {
      if (runEnd > runX) {
        context.globalAlpha = runAlpha;
        context.fillStyle = runFill;
        context.fillRect(runX, y, runEnd - runX, height);
      }
      runEnd = runX = -1;
    };
    while (i < last && begin[i] <= until) {
      const x = view.names + (begin[i] - pane.begin) * perUnit;
      const width = (end[i] - begin[i]) * perUnit;
      if (width >= 2) {
        flush();
        context.globalAlpha = matches && !matches[name[i]] ? 0.22 : 1;
        this.paintSlice(i, x, y, width, height);
        i++;
        continue;
      }
      const pixel = Math.floor(x);
      let next = this.gallop(begin, i + 1, last, pane.begin + (pixel + 1 - view.names) * perPixel);
      if (next - i > 1 && (end[next - 1] - begin[next - 1]) * perUnit >= 2) next--;
      const filled = (sums[next] - sums[i]) * perUnit;
      // The longest of some stands for all.
      let shown = i;
      const found = !matches || view.matchSums[next] > view.matchSums[i];
      const stride = Math.max(1, (next - i) >> 2);
      for (let j = i + stride; j < next; j += stride) {
        if (end[j] - begin[j] > end[shown] - begin[shown]) shown = j;
      }
      const strength = filled > 0.75 ? 1 : filled > 0.4 ? 0.75 : filled > 0.15 ? 0.55 : 0.4;
      const alpha = found ? strength : 0.15;
      const colour = colours.of(kind[shown], name[shown], failedStatus(kind[shown], status[shown]));
      if (pixel === runEnd && colour === runFill && alpha === runAlpha) runEnd = pixel + 1;
      else if (pixel >= runEnd) {
        flush();
        runX = pixel;
        runEnd = pixel + 1;
        runFill = colour;
        runAlpha = alpha;
      }
      i = next;
    }
    flush();
    context.globalAlpha = 1;
  }
  // firstAbove(values, from, to, limit, true) where it is probably near.
  gallop(values, from, to, limit) {
    let step = 1;
    while (from + step < to && values[from + step] < limit) step *= 2;
    return firstAbove(values, from + (step >> 1), Math.min(from + step, to), limit, true);
  }

  paintSlice(i, x, y, width, height) {
    const { context, view, colours } = this;
    const { name, kind, status, texts } = view.profile;
    const left = Math.max(x, view.names - 2), right = Math.min(x + width, view.width + 2);
    context.fillStyle = colours.of(kind[i], name[i], failedStatus(kind[i], status[i]));
    context.fillRect(left, y, Math.max(right - left - 0.6, 1), height);
    if (kind[i] === Kind.wait && right - left > 6) this.hatch(left, y, right - left - 0.6, height);
    if (right - left < 26) return;
    const text = texts[name[i]];
    context.fillStyle = colours.onSlice;
    const room = right - left - 8;
    const full = text.length * this.letter < room * 0.9 ? text : short(text, Math.floor(room / this.letter));
    if (full.length > 1) context.fillText(full, left + 4, y + height / 2 + 0.5, room);
  }
  hatch(x, y, width, height) {
    const { context, colours } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = colours.ground;
    context.globalAlpha *= 0.55;
    context.lineWidth = 1.5;
    context.beginPath();
    for (let at = Math.floor(x / 8) * 8; at < x + width + height; at += 8) {
      context.moveTo(at, y);
      context.lineTo(at - height, y + height);
    }
    context.stroke();
    context.restore();
  }

  paintChart(pane, item, y, height) {
    if (item.chart === "engine") this.paintEngine(pane, item, y, height);
    else if (item.chart === "memory")
      this.paintSteps(pane, item.memory.times, item.memory.bytes, y, height, (bytes) => `at most ${sizeText(bytes)}`);
    else this.paintCounter(pane, item, y, height);
  }
  // How much ran at once, on average over each pixel.
  paintEngine(pane, item, y, height) {
    const { context, view, colours } = this;
    const from = view.names, to = view.width;
    const places = item.rows.map((row) => row.first);
    const until = (time) => {
      let all = 0;
      item.rows.forEach((row, r) => {
        const last = row.first + row.count;
        const begin = view.profile.begin;
        // Moments come in order, so what is next is near.
        if (places[r] < last && begin[places[r]] <= time) places[r] = this.gallop(begin, places[r], last, time);
        all += view.workOfRow(item, row, time, Math.max(places[r] - 1, row.first), Math.min(places[r] + 1, last)).time;
      });
      return all;
    };
    context.fillStyle = item.engine === "vector" ? colours.kernels[0] : colours.copy;
    context.beginPath();
    context.moveTo(from, y + height);
    let before = until(view.time(pane, from));
    for (let x = from; x < to; x++) {
      const now = until(view.time(pane, x + 1));
      const level = (now - before) / (pane.span / view.tracksWidth) / item.most;
      const top = y + height * (1 - Math.min(1, Math.max(0, level)));
      context.lineTo(x, top);
      context.lineTo(x + 1, top);
      before = now;
    }
    context.lineTo(to, y + height);
    context.fill();
    context.fillStyle = colours.line;
    context.fillRect(from, y + height, to - from, 1);
    if (item.most > 1) this.badge(`at most ${item.most} at once`, y);
  }
  badge(text, y) {
    const { context, view, colours } = this;
    if (view.tracksWidth < 330) return;
    const width = context.measureText(text).width + 10;
    context.globalAlpha = 0.8;
    context.fillStyle = colours.ground;
    context.fillRect(view.width - width - 8, y - 1, width, 14);
    context.globalAlpha = 1;
    context.fillStyle = colours.quiet;
    context.fillText(text, view.width - width - 3, y + 6.5);
  }
  paintCounter(pane, item, y, height) {
    const { times } = item.set, { values } = item.counter;
    if (!item.rates) { // a second
      item.rates = new Float64Array(times.length);
      for (let i = 0; i + 1 < times.length; i++)
        item.rates[i] = times[i + 1] > times[i] ? (Math.max(0, values[i + 1] - values[i]) / (times[i + 1] - times[i])) * 1e12 : 0;
    }
    const unit = this.view.profile.texts[item.counter.unit];
    this.paintSteps(pane, times, item.rates, y, height, (most) =>
      unit === "ps" ? `at most ${(most / 1e12).toFixed(2)} at once` : `at most ${rate(most, ` ${unit}/s`)}`);
  }
  // Values that hold until the next one; what shares a pixel shows its largest.
  paintSteps(pane, times, values, y, height, label) {
    const { context, view, colours } = this;
    const most = (values.most ??= values.reduce((a, b) => Math.max(a, b), 0));
    const perPixel = pane.span / view.tracksWidth;
    let i = Math.max(0, firstAbove(times, 0, times.length, pane.begin, false) - 1);
    context.fillStyle = colours.range;
    if (most > 0) {
      let x = Math.max(view.names, view.x(pane, times[i]));
      while (i < times.length && x < view.width) {
        const limit = pane.begin + (x + 1 - view.names) * perPixel;
        const next = Math.max(i + 1, this.gallop(times, i, times.length, limit));
        let value = values[i];
        for (let j = i + 1; j < next; j++) value = Math.max(value, values[j]);
        const to = next < times.length ? Math.min(view.x(pane, times[next]), view.width) : view.width;
        const top = height * (value / most);
        context.fillRect(x, y + height - top, Math.max(1, to - x), top);
        x = Math.max(to, x + 0.01);
        i = next;
      }
    }
    context.fillStyle = colours.line;
    context.fillRect(view.names, y + height, view.tracksWidth, 1);
    this.badge(label(most), y);
  }

  paintRange(pane) {
    const { context, view, colours } = this;
    if (!view.range || view.range.pane !== pane) return;
    const from = view.x(pane, view.range.begin), to = view.x(pane, view.range.end);
    context.fillStyle = colours.accent;
    context.globalAlpha = 0.14;
    context.fillRect(from, pane.rowsTop, to - from, pane.rowsHeight);
    context.globalAlpha = 1;
    context.fillRect(from - 0.5, pane.rowsTop, 1, pane.rowsHeight);
    context.fillRect(to - 0.5, pane.rowsTop, 1, pane.rowsHeight);
  }
  // Around what is selected, and what the pointer is on.
  paintMarks(pane) {
    const { context, view, colours } = this;
    const frame = (slice, width, colour) => {
      if (slice < 0 || view.paneOf(slice) !== pane) return;
      const box = view.boxOf(slice);
      if (!box) return;
      const left = Math.max(box.x, view.names - 4), right = Math.min(box.x + Math.max(box.width, 3), view.width + 4);
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(left - 0.5, box.y + 0.5, right - left, rowHeight - 1);
    };
    frame(view.hovered, 1.5, colours.text);
    frame(view.selected, 2.5, colours.accent);
  }

  paintSplit() {
    const { context, view, colours } = this;
    const y = view.host.top + view.host.height;
    context.fillStyle = colours.line;
    context.fillRect(0, y, view.width, splitHeight);
    context.fillStyle = colours.quiet;
    context.fillRect(view.width / 2 - 16, y + 3, 32, 1.5);
  }

  // From calls to the work that they submitted, from what a wait waited for to the wait, and from the last work
  // of a stream to the call that waited for it.
  paintArrows() {
    const { view } = this;
    const { selected, profile } = view;
    if (view.allArrows) this.paintAllArrows();
    if (selected < 0) return;
    if (selected >= profile.firstWork) {
      this.paintArrow(this.arrows.callOf(selected), selected, true);
      const cause = profile.cause[selected - profile.firstWork];
      if (cause > 0) this.paintArrow(cause - 1, selected, true);
      const finder = this.arrows.finderOf(selected);
      if (finder >= 0) this.paintArrow(selected, finder, true);
    } else {
      for (const work of this.arrows.foundBy(selected).slice(0, 200)) this.paintArrow(work, selected, true);
      for (const work of this.arrows.worksOf(selected).slice(0, 200)) this.paintArrow(selected, work, true);
    }
  }
  paintAllArrows() {
    const { view } = this;
    const { begin, end, firstWork } = view.profile;
    let left = 600;
    for (const item of view.model.items) {
      if (item.type !== "row") continue;
      const last = item.row.first + item.row.count;
      let i = firstAbove(end, item.row.first, last, view.model.begin, true);
      for (; i < last && begin[i] < view.model.begin + view.model.span && left > 0; i++, left--) {
        this.paintArrow(this.arrows.callOf(i), i, false);
        const cause = view.profile.cause[i - firstWork];
        if (cause > 0) this.paintArrow(cause - 1, i, false);
        const finder = this.arrows.finderOf(i);
        if (finder >= 0) this.paintArrow(i, finder, false);
      }
    }
  }
  // Its ends stay within their panes, also where what they mean is out of sight.
  paintArrow(from, to, strong) {
    const { context, view, colours } = this;
    if (from < 0) return;
    const a = view.boxOf(from), b = view.boxOf(to);
    if (!a || !b) return;
    const inside = (box, y) => Math.min(Math.max(y, box.pane.rowsTop + 2), box.pane.top + box.pane.height - 2);
    const insideX = (x) => Math.min(Math.max(x, view.names), view.width);
    const works = from >= view.profile.firstWork;
    const x1 = insideX(works ? a.x + a.width : a.x + Math.min(a.width / 2, 40)), y1 = inside(a, a.y + rowHeight / 2);
    const x2 = insideX(works ? b.x + b.width : b.x), y2 = inside(b, b.y + rowHeight / 2);
    context.strokeStyle = context.fillStyle = strong ? colours.accent : colours.quiet;
    context.globalAlpha = strong ? 1 : 0.45;
    context.lineWidth = strong ? 1.8 : 1;
    const bend = Math.max(24, Math.abs(y2 - y1) / 2) * (y2 >= y1 ? 1 : -1);
    context.beginPath();
    context.moveTo(x1, y1);
    context.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    context.stroke();
    const tip = y2 >= y1 ? -1 : 1;
    context.beginPath();
    context.moveTo(x2, y2);
    context.lineTo(x2 - 4, y2 + 7 * tip);
    context.lineTo(x2 + 4, y2 + 7 * tip);
    context.fill();
    context.globalAlpha = 1;
  }
}

// Outcomes 2 of work, errors of calls.
function failedStatus(kind, status) { return kind >= Kind.other ? status === 2 : status !== 0; }
// In the unit of the largest that steps of this size want: 1.25 ms, 1.30 ms.
function tickText(ps, step) {
  if (ps === 0) return "0";
  const [scale, unit] = unitOf(ps);
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(scale / step) - 1e-9)));
  return `${(ps / scale).toFixed(digits)} ${unit}`;
}
function sizeText(bytes) {
  const found = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]].find(([scale]) => bytes >= scale);
  return found ? `${(bytes / found[0]).toFixed(2)} ${found[1]}` : `${bytes} B`;
}

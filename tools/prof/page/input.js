// Mouse, fingers and keys on the timeline.

class Input {
  constructor(app) {
    this.app = app;
    this.canvas = app.canvas;
    this.pointers = new Map();
    this.gesture = null;
    this.canvas.addEventListener("pointerdown", (event) => this.down(event));
    this.canvas.addEventListener("pointermove", (event) => this.move(event));
    this.canvas.addEventListener("pointerup", (event) => this.up(event));
    this.canvas.addEventListener("pointercancel", (event) => this.up(event));
    this.canvas.addEventListener("pointerleave", () => app.hover(-1));
    this.canvas.addEventListener("dblclick", () => app.zoomToSelection());
    this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    document.addEventListener("keydown", (event) => this.key(event));
  }
  // On the canvas.
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  down(event) {
    if (event.button > 0) return;
    const { view } = this.app;
    const at = this.point(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, at);
    const place = view.at(at.x, at.y);
    if (place.pane) view.active = place.pane;
    if (this.pointers.size === 2) {
      this.gesture = { type: "pinch", pane: view.active, distance: this.distance() };
      return;
    }
    const range = place.part === "scale" || (place.part === "tracks" && (event.shiftKey || this.app.rangeMode));
    this.gesture = { type: place.part === "split" ? "split" : range ? "range" : "pan", place, from: at, last: at, moved: false,
      pane: place.pane, time: place.pane && view.time(place.pane, at.x) };
  }
  distance() {
    const [a, b] = [...this.pointers.values()];
    return Math.max(20, Math.abs(a.x - b.x));
  }
  move(event) {
    const { view } = this.app;
    const at = this.point(event);
    const { gesture } = this;
    if (!gesture) {
      const place = view.at(at.x, at.y);
      this.canvas.style.cursor = place.part === "split" ? "row-resize" : place.part === "scale" ? "col-resize"
        : place.part === "names" && place.item?.type === "head" ? "pointer" : "default";
      this.app.hover(place.part === "tracks" ? view.sliceAt(at.x, at.y) : -1);
      return;
    }
    this.pointers.set(event.pointerId, at);
    if (gesture.type === "pinch") {
      if (this.pointers.size < 2) return;
      const [a, b] = [...this.pointers.values()];
      const distance = this.distance();
      gesture.pane.zoom(distance / gesture.distance, view.time(gesture.pane, (a.x + b.x) / 2));
      gesture.distance = distance;
      this.app.changed();
      return;
    }
    if (!gesture.moved && Math.hypot(at.x - gesture.from.x, at.y - gesture.from.y) < 4) return;
    gesture.moved = true;
    const { pane } = gesture;
    if (gesture.type === "split") {
      view.share = Math.min(0.9, Math.max(0.05, at.y / view.height));
      view.place();
    } else if (gesture.type === "range") {
      const time = view.time(pane, Math.min(Math.max(at.x, view.names), view.width));
      this.app.setRange(pane, Math.min(time, gesture.time), Math.max(time, gesture.time));
    } else {
      if (gesture.place.part === "tracks") pane.pan(((gesture.last.x - at.x) / view.tracksWidth) * pane.span);
      pane.scroll += gesture.last.y - at.y;
      pane.clamp();
      this.canvas.style.cursor = "grabbing";
    }
    gesture.last = at;
    this.app.changed();
  }
  up(event) {
    this.pointers.delete(event.pointerId);
    const { gesture } = this;
    if (this.pointers.size > 0) return;
    this.gesture = null;
    this.canvas.style.cursor = "default";
    if (!gesture || gesture.type === "pinch") return;
    if (gesture.type === "range" && gesture.moved) this.app.endRange();
    else if (!gesture.moved && event.type === "pointerup") this.click(gesture.place, this.point(event));
  }
  click(place, at) {
    const { app } = this;
    if (place.item?.type === "head") app.fold(place.item.key);
    else if (place.part === "tracks") app.select(app.view.sliceAt(at.x, at.y), {});
  }

  wheel(event) {
    event.preventDefault();
    const { view } = this.app;
    const at = this.point(event);
    const { pane, part } = view.at(at.x, at.y);
    if (!pane) return;
    view.active = pane;
    const pixels = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
    const x = event.deltaX * pixels, y = event.deltaY * pixels;
    if (part === "names") pane.scroll += y;
    else if (event.shiftKey || Math.abs(x) > Math.abs(y)) pane.pan(((x || y) / view.tracksWidth) * pane.span);
    else pane.zoom(Math.exp(-Math.max(-400, Math.min(400, y)) * 0.0022), view.time(pane, at.x));
    pane.clamp();
    this.app.changed();
  }

  key(event) {
    const { app } = this;
    if (event.ctrlKey || event.metaKey || event.altKey || document.getElementById("help").open) return;
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "Escape") return app.escape();
    if (typing) {
      if (event.key === "Enter") app.nextMatch(event.shiftKey ? -1 : 1);
      return;
    }
    const own = event.target === this.canvas || event.target === document.body;
    const action = this.actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || (action.canvas && (!own || app.tab !== "timeline"))) return;
    event.preventDefault();
    action.run(app);
  }
  get actions() {
    const onCanvas = (run) => ({ canvas: true, run });
    const pane = (app) => app.view.active;
    const zoom = (factor) => onCanvas((app) => app.zoom(factor));
    const pan = (share) => onCanvas((app) => { pane(app).pan(pane(app).span * share); app.changed(); });
    const neighbour = (step) => onCanvas((app) => app.selectNear((slice) => app.view.neighbour(slice, step)));
    const row = (step) => onCanvas((app) => app.selectNear((slice) => app.view.nextRow(slice, step)));
    return {
      w: zoom(1.4), s: zoom(1 / 1.4), "+": zoom(1.4), "-": zoom(1 / 1.4), a: pan(-0.15), d: pan(0.15),
      ArrowLeft: neighbour(-1), ArrowRight: neighbour(1), ArrowUp: row(-1), ArrowDown: row(1),
      Enter: onCanvas((app) => app.zoomToSelection()), c: onCanvas((app) => app.toCall()),
      0: onCanvas((app) => app.fit()), x: onCanvas((app) => app.toggleArrows()), r: onCanvas((app) => app.toggleRangeMode()),
      n: { run: (app) => app.nextMatch(1) }, p: { run: (app) => app.nextMatch(-1) },
      "/": { run: (app) => app.search.focus() }, "?": { run: (app) => app.help() },
    };
  }
}

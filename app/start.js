// Runs in the browser before Streamlit.

// The server is at the address of this page without the name of its screen. By itself, Streamlit would first look for it
// below that name, and the console would show two requests that fail.
window.__streamlit = { BACKEND_BASE_URL: new URL('.', location.href).href };

// A screen completes its address by itself. Each such change would be a step of Back that leads nowhere, so only what
// follows a click or a key of the visitor is a new step.
let acted = false;
for (const action of ['pointerdown', 'keydown']) {
  addEventListener(action, () => { acted = true; }, true);
}
const push = history.pushState;
history.pushState = function (...step) {
  (acted ? push : history.replaceState).apply(history, step);
  acted = false;
};

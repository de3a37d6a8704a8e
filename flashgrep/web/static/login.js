// Keep the key for this origin's scripts, and go on without leaving the link in the tab's history.
const { key, target } = document.documentElement.dataset;
localStorage.setItem("flashgrep.key", key);
location.replace(target);

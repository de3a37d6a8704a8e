// Store the key for this origin's scripts, and continue without leaving the link in the tab's history.
const { key, target } = document.documentElement.dataset;
localStorage.setItem("flashgrep.key", key);
location.replace(target);

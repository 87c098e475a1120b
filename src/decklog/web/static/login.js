// The code stands behind the # of the link: it is never sent in an address, and leaves the history at once.
const code = location.hash.slice(1)
if (code) {
  history.replaceState(null, '', location.pathname)
  document.getElementById('token').value = code
  document.getElementById('login').submit()
}

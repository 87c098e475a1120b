// The login code is in the URL fragment: it is never sent in a URL, and is removed from the history at once.
const form = document.getElementById('login')
const next = document.getElementById('following')
function logIn() {
  const code = location.hash.slice(1)
  if (!code) return
  history.replaceState(null, '', location.pathname + location.search)
  // The link from the terminal names no page: return to the page that this tab requested.
  if (!next && sessionStorage.next) {
    const field = Object.assign(document.createElement('input'), { type: 'hidden', name: 'next', value: sessionStorage.next })
    form.append(field)
  }
  sessionStorage.removeItem('next')
  document.getElementById('token').value = code
  form.submit()
}
// Pasting the terminal's link over this page changes only the fragment.
addEventListener('hashchange', logIn)
if (next) {
  sessionStorage.next = next.getAttribute('href')
  // Links from other sites arrive without the SameSite session cookie; a request from this page sends it.
  fetch(next.href, { method: 'HEAD', redirect: 'manual' }).then(({ ok }) => ok && location.replace(next.href)).catch(() => {})
}
logIn()

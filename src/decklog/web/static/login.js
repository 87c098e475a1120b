// The code is behind the # of the link: it is never sent in an address, and leaves the history at once.
const form = document.getElementById('login')
const next = document.getElementById('following')
function logIn() {
  const code = location.hash.slice(1)
  if (!code) return
  history.replaceState(null, '', location.pathname + location.search)
  // The link of the terminal names no page: go to the one that this tab asked for before.
  if (!next && sessionStorage.next) {
    const field = Object.assign(document.createElement('input'), { type: 'hidden', name: 'next', value: sessionStorage.next })
    form.append(field)
  }
  sessionStorage.removeItem('next')
  document.getElementById('token').value = code
  form.submit()
}
// A link of the terminal that is pasted over this page changes what is behind the # alone.
addEventListener('hashchange', logIn)
if (next) {
  sessionStorage.next = next.getAttribute('href')
  // Whoever follows a link from elsewhere comes without the session's cookie; from here it is sent.
  fetch(next.href, { method: 'HEAD', redirect: 'manual' }).then(({ ok }) => ok && location.replace(next.href)).catch(() => {})
}
logIn()

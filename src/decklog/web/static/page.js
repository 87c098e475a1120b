// A convenience: each page is whole without it.
const $ = (selector, root = document) => root.querySelector(selector)
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]
const policy = (window.trustedTypes || { createPolicy: (_, rules) => rules }).createPolicy('decklog', {
  // Only what this server made as a page, and only its own worker.
  createHTML: text => text,
  createScriptURL: url => {
    if (!/^\/static\/[0-9a-f]{16}\/events\.js$/.test(url)) throw new TypeError('not ours')
    return url
  },
})
const parsed = text => new DOMParser().parseFromString(policy.createHTML(text), 'text/html')
const read = async (url, headers) => {
  const answer = await fetch(url, { headers })
  return answer.ok && !answer.redirected && await answer.text()
}
// A page of ours; nothing where there is none, or where one has to log in first.
const fetched = async url => {
  const text = await read(url)
  return text && parsed(text)
}
// The same by the worker, which asks once for all tabs that show the same.
const waiting = new Map()
const shared = url => !worker ? read(url, { 'x-part': 'live' }) : new Promise(done => {
  waiting.set(url, [...waiting.get(url) || [], done])
  worker.port.postMessage(url)
})
function answered({ url, text }) {
  for (const done of waiting.get(url) || []) done(text)
  waiting.delete(url)
}
const worker = window.SharedWorker && new SharedWorker(policy.createScriptURL(document.body.dataset.events), { name: 'decklog' })
const whole = document.documentElement
const toEnd = () => scrollTo(0, whole.scrollHeight)
const stored = (name, value) => value === undefined ? localStorage.getItem(name) : localStorage.setItem(name, value)

const skew = Date.parse(document.body.dataset.now) - Date.now()
function span(seconds) {
  const s = Math.max(0, Math.floor(seconds))
  if (s >= 172800) return `${Math.floor(s / 86400)} d`
  if (s >= 3600) return `${Math.floor(s / 3600)} h`
  return s >= 60 ? `${Math.floor(s / 60)} min` : `${s} s`
}
function tick() {
  const now = Date.now() + skew
  const isOld = live.lostSince && Date.now() - live.lostSince > 10000
  for (const time of $$('time[data-ago], time[data-age]')) {
    const at = Date.parse(time.dateTime)
    const said = isOld ? time.dateTime.slice(11, 19) + ' UTC' : span((now - at) / 1000) + ('ago' in time.dataset ? ' ago' : '')
    if (time.textContent !== said) time.textContent = said
  }
  say()
}

// Live: a worker tells which runs moved; the page asks for what it lacks

const live = { state: 'connecting', lostSince: 0, lastAt: Date.parse(document.body.dataset.last) - skew || 0, next: 0 }
function say() {
  const place = $('#live')
  const text = $('[data-live=none]') ? 'as of an entry, not live'
    : live.held ? 'held still: . goes on'
    : live.state === 'live' ? 'live' + (live.lastAt ? `, entry ${span((Date.now() - live.lastAt) / 1000)} ago` : '')
    : live.state === 'lost' ? 'reconnecting; a restarted server needs a new login'
    : null
  if (text && place.textContent !== text) place.textContent = text
  place.classList.toggle('lost', live.state === 'lost')
}
function heard(message) {
  live.lostSince = message.state === 'lost' ? live.lostSince || Date.now() : 0
  live.state = message.state
  if (message.moved) live.lastAt = Date.now()
  const run = $('[data-run]')
  if (message.reset || (message.moved && (!run || run.dataset.run in message.moved))) catchUp()
  // How long ago the last entry was is said once a second: to say it for each would be a frame more for each.
  if (!message.moved) say()
}
// The new rows first: the whole page takes longer to read, and both at once would keep them waiting. Whoever is not looked at
// shows in its title what waits, and no rows.
const catchUp = () => $('#tail') && !document.hidden ? follow().then(() => setTimeout(refresh, 50)) : refresh()
const rest = ms => new Promise(done => { live.hurry = done; setTimeout(done, ms) })
addEventListener('visibilitychange', () => {
  if (document.hidden) return
  live.hurry?.()
  if (live.state === 'live') catchUp()
})
const options = {
  ignoreActiveValue: true,
  callbacks: {
    beforeAttributeUpdated: (name, node) => !(name === 'open' && node.tagName === 'DETAILS'),
    beforeNodeMorphed: node => !['tail', 'item', 'slider'].includes(node.id),
    beforeNodeRemoved: node => !node.classList?.contains('kept'),
  },
}
const address = () => location.pathname + location.search
const isLive = () => ![undefined, 'none'].includes($('[data-live]')?.dataset.live)
async function refresh() {
  live.wanted = true
  if (live.busy) return
  live.busy = true
  try {
    while (live.wanted && !live.held && isLive()) {
      await rest(Math.max(0, live.next + (document.hidden ? 9000 : 0) - Date.now()))
      live.wanted = false
      const begun = Date.now()
      const asked = address()
      const text = await shared(asked)
      if (!text) return
      // Whoever moved the slider meanwhile looks at something else.
      if (asked === address()) put(parsed(text))
      // What is slow, since it is large or many tabs want it at once, is done less often: a tenth of the time at most. Where new
      // rows come by themselves, the rest can wait; and many tabs do not begin at the same moment.
      live.next = begun + Math.max($('#tail') ? 2000 + 1000 * Math.random() : 1000, 10 * (Date.now() - begun))
    }
  } catch { live.wanted = true } finally { live.busy = false }
}
function put(fresh) {
  const root = $('[data-live]'), next = $('[data-live]', fresh)
  if (!next) return
  const item = $('#item'), other = $('#item', fresh)
  if (item && (!other || other.dataset.digest !== item.dataset.digest || other.dataset.open !== item.dataset.open)) {
    const changed = $('#changed')
    if (changed) changed.hidden = false
  }
  Idiomorph.morph(root, next, options)
  Idiomorph.morph($('#bar nav'), $('#bar nav', fresh), options)
  document.title = fresh.title
  buttons()
  tick()
}

const tail = {}
const atEnd = () => innerHeight + scrollY >= whole.scrollHeight - 60
async function follow() {
  const list = $('#tail')
  tail.wanted = true
  if ('still' in list.dataset || tail.busy || live.held) return
  tail.busy = true
  try {
    while (tail.wanted && !live.held) {
      tail.wanted = false
      const run = list.dataset.tail.split('/').map(encodeURIComponent).join('/')
      const text = await shared(`/runs/${run}/rows?after=${list.dataset.last}`)
      if (!text || !list.isConnected) { tail.wanted = true; break }
      add(list, parsed(`<ol>${text}</ol>`))
    }
  } catch { tail.wanted = true } finally { tail.busy = false }
}
const aged = () => $$('.fresh').forEach(row => row.classList.remove('fresh'))
function add(list, fresh) {
  const rows = [...$('ol', fresh).children]
  const last = Number(list.dataset.last)
  const newest = Math.max(last, ...$$('li[id^="e-"]', fresh).map(row => Number(row.id.slice(2))))
  if (newest === last) return
  const inside = list.closest('.newest'), stay = !inside && atEnd()
  // A tint that is taken away, with the next rows where they come soon, and no animation: each frame of one is drawn by every
  // window, and takes longer than the row.
  aged()
  clearTimeout(tail.aging)
  tail.aging = setTimeout(aged, 600)
  for (const row of rows) row.classList.add('fresh')
  list.append(...rows)
  list.dataset.last = newest
  while (list.children.length > 300) list.firstElementChild.remove()
  if (stay) toEnd()
  else if (!inside && !atEnd()) newer(rows.length)
}
let missed = 0
function newer(count) {
  missed += count
  let button = $('.newer')
  if (!button) {
    button = document.createElement('button')
    button.className = 'newer kept'
    button.onclick = () => { missed = 0; button.remove(); toEnd() }
    $('#tail').after(button)
  }
  button.textContent = `↓ ${missed} new`
}

// The slider: a number that the page is as of

const slide = $('#slide')
let step = () => {}
if (slide) {
  slide.hidden = false
  let wait = 0, round = 0
  const addressOf = at => {
    const url = new URL(location), query = url.searchParams
    query.delete('before')
    at === Number($('#slider').dataset.newest) ? query.delete('at') : query.set('at', at)
    return url
  }
  const show = async at => {
    const mine = ++round, url = addressOf(at)
    const fresh = await fetched(url)
    // The last one wins, whatever comes first.
    if (mine !== round || !fresh) return
    history.replaceState(null, '', url)
    document.title = fresh.title
    const run = $('.run'), next = $('.run', fresh)
    run.className = next.className
    run.dataset.live = next.dataset.live
    for (const old of $$('.run > :not(#slider)')) old.remove()
    let before = true
    for (const part of [...next.children]) {
      if (part.id === 'slider') { before = false; continue }
      before ? $('#slider').before(part) : run.append(part)
    }
    $('#command').textContent = $('#command', fresh).textContent
    buttons()
  }
  slide.addEventListener('input', () => {
    $('#at').value = slide.value
    clearTimeout(wait)
    wait = setTimeout(show, 80, Number(slide.value))
  })
  step = by => {
    slide.value = Number(slide.value) + by
    slide.dispatchEvent(new Event('input'))
  }
}

const rowsOf = () => $$('[data-row]')
let place = -1
const here = () => rowsOf()[place]
const go = url => { location.href = url }
const open = selector => {
  const link = $(selector)
  link?.click()
  return link
}
function move(by) {
  const rows = rowsOf()
  if (!rows.length) return
  here()?.classList.remove('here')
  place = Math.min(rows.length - 1, Math.max(0, place + by))
  here().classList.add('here')
  const link = $('a', here())
  link ? link.focus() : here().scrollIntoView({ block: 'nearest' })
  if ($('#peek').open) peek()
}
// Beside the list: the head of what a row leads to. A second press takes it away.
async function peek(turn) {
  const dialog = $('#peek'), link = here() && $('a', here())
  if (!link || (turn && dialog.open)) return dialog.close()
  const fresh = await fetched(link.href), main = fresh && $('#main', fresh)
  if (!main) return
  $$('form, nav', main).forEach(part => part.remove())
  $$('[id]', main).forEach(part => part.removeAttribute('id'))
  dialog.replaceChildren(...main.childNodes)
  if (!dialog.open) dialog.show()
  link.focus()
}
function mark() {
  if (!here()?.id.startsWith('run-')) return
  here().classList.toggle('marked')
  const [a, b] = $$('.marked').map(row => row.id.slice(4))
  if (b) go(`/compare?${new URLSearchParams({ a, b })}`)
}
function jump(by) {
  const now = Number(slide?.value), found = $$('.marks a').map(link => Number(new URL(link.href).searchParams.get('at')))
  const next = by > 0 ? found.find(at => at > now) : found.findLast(at => at < now)
  if (next) step(next - now)
}
const goTo = { n: '/now', r: '/runs', i: '/inbox', s: '/spend', t: '/tasks' }
let pressed = ''
const keys = {
  o: () => here() && $('a', here()).click(),
  ' ': () => peek(true),
  x: mark,
  '{': () => jump(-1),
  '}': () => jump(1),
  f: toEnd,
  e: () => $$('#main details').forEach(one => one.toggleAttribute('open')),
  y: () => copyText(here()?.id.replace(/^\w+-/, '') || location.href),
  b: () => open('[data-by] [aria-current] + a'),
  Escape: () => $('#peek').open ? peek(true) : history.back(),
  j: () => move(1),
  k: () => move(-1),
  a: () => choose('granted'),
  d: () => choose('denied'),
  '[': () => step(-1),
  ']': () => step(1),
  '.': () => { live.held = !live.held; say(); if (!live.held) catchUp() },
  c: () => copy('command'),
  '/': () => go('/search'),
  t: () => theme(true),
  '?': () => $('#help').showModal(),
}
function choose(verdict) {
  const form = $('form.answer'), link = here() && $(`[data-key="${verdict[0] === 'g' ? 'a' : 'd'}"]`, here())
  if (link) go(link.href)
  else if (form) { $('#reason').focus(); form.dataset.wanted = verdict }
}
addEventListener('keydown', event => {
  const { key, target } = event
  const typing = target.closest('input, textarea, select, dialog')
  if (key === 'Enter' && event.ctrlKey && target.form?.classList.contains('answer')) {
    const wanted = target.form.dataset.wanted || new URLSearchParams(location.search).get('verdict')
    const button = wanted && $(`[name=verdict][value="${CSS.escape(wanted)}"]`, target.form)
    if (button) target.form.requestSubmit(button)
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || stored('keys') === 'off') return
  if (pressed === 'g' && goTo[key]) go(goTo[key])
  else if (/[1-9]/.test(key)) open(`.tabs a:nth-child(${key})`)
  else if (open(`[data-span="${CSS.escape(key)}"]`)) return
  else if (pressed !== 'g' && keys[key]) { event.preventDefault(); keys[key]() }
  pressed = key
})

const copyText = text => navigator.clipboard?.writeText(text)
const copy = id => copyText($(`#${id}`).textContent)
function buttons() {
  for (const button of $$('[data-copy]')) {
    button.hidden = !navigator.clipboard
    button.onclick = () => copy(button.dataset.copy)
  }
}
function theme(turn) {
  const isDark = (stored('theme') || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : '')) === 'dark'
  if (turn) stored('theme', isDark ? 'light' : 'dark')
  if (stored('theme')) whole.dataset.theme = stored('theme')
}
$('#keys-on').checked = stored('keys') !== 'off'
$('#keys-on').onchange = event => stored('keys', event.target.checked ? 'on' : 'off')
buttons()
theme(false)
setInterval(tick, 1000)

if (worker) {
  worker.port.onmessage = ({ data }) => 'url' in data ? answered(data) : heard(data)
  worker.port.start()
  addEventListener('pagehide', () => worker.port.postMessage('bye'))
  // A tab that comes back from the history has said goodbye.
  addEventListener('pageshow', event => event.persisted && location.reload())
} else {
  let source = null
  const listen = () => {
    source?.close()
    source = null
    if (document.hidden) return
    source = new EventSource('/events')
    for (const name of ['hello', 'reset']) source.addEventListener(name, () => heard({ state: 'live', reset: true }))
    source.addEventListener('moved', event => heard({ state: 'live', moved: JSON.parse(event.data) }))
    source.onerror = () => heard({ state: 'lost' })
  }
  addEventListener('visibilitychange', listen)
  listen()
}

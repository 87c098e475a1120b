// A convenience: each page is whole without it.
const $ = (selector, root = document) => root.querySelector(selector)
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]
const policy = (window.trustedTypes || { createPolicy: (_, rules) => rules }).createPolicy('decklog', {
  // Only what this server made as a page, and only its own worker.
  createHTML: text => text,
  createScriptURL: url => {
    if (!/^\/static\/[0-9a-f]{16}\/events\.js$/.test(url)) throw Error('not ours')
    return url
  },
})
const parsed = text => new DOMParser().parseFromString(policy.createHTML(text), 'text/html')
// A worker asks for all tabs, once for those that show the same. Without workers a tab is its own, by the same program.
const given = document.body.dataset
const alone = ({ port1, port2 }) => {
  import(given.events).then(() => onconnect({ ports: [port2] }))
  return port1
}
const port = window.SharedWorker ? new SharedWorker(policy.createScriptURL(given.events), { name: 'decklog' }).port : alone(new MessageChannel())
const waiting = {}
const shared = asked => new Promise(done => {
  (waiting[asked] ||= []).push(done)
  port.postMessage(asked)
})
function answered({ asked, text }) {
  for (const done of waiting[asked] || []) done(text)
  delete waiting[asked]
}
// A page of ours; nothing where there is none, or where one has to log in first.
const fetched = async url => {
  const text = await shared(` ${url}`)
  return text && parsed(text)
}
const whole = document.documentElement
const toEnd = () => scrollTo(0, whole.scrollHeight)

const skew = Date.parse(given.now) - Date.now()
function span(seconds) {
  const s = Math.max(0, seconds), [size, unit] = s >= 172800 ? [86400, 'd'] : s >= 3600 ? [3600, 'h'] : s >= 60 ? [60, 'min'] : [1, 's']
  return `${Math.floor(s / size)} ${unit}`
}
function tick() {
  const now = Date.now() + skew
  const isOld = live.lostSince && Date.now() - live.lostSince > 10000
  for (const time of $$('[data-ago], [data-age]')) {
    const at = Date.parse(time.dateTime)
    const said = isOld ? time.dateTime.slice(11, 19) + ' UTC' : span((now - at) / 1000) + ('ago' in time.dataset ? ' ago' : '')
    if (time.textContent !== said) time.textContent = said
  }
  say()
  grow()
  if (isStale()) refresh()
}

// Live: a worker tells which runs moved; the page asks for what it lacks

const live = { state: 'connecting', lostSince: 0, lastAt: Date.parse(given.last) - skew || 0, next: 0 }
function say() {
  const place = $('#live')
  const text = $('[data-live=none]') ? 'as of an entry, not live'
    : live.held ? 'held still: . goes on'
    : live.state === 'live' ? 'live' + (live.lastAt ? `, entry ${span((Date.now() - live.lastAt) / 1000)} ago` : '')
    : live.state === 'lost' ? 'reconnecting; a restarted server needs a new login'
    : ''
  if (text && place.textContent !== text) place.textContent = text
  place.classList.toggle('lost', live.state === 'lost')
}
function heard({ state, moved, reset }) {
  const run = $('[data-run]')?.dataset.run
  live.lostSince = state === 'lost' ? live.lostSince || Date.now() : 0
  live.state = state
  live.newest = moved?.[run] || live.newest
  if (moved) live.lastAt = Date.now()
  if (reset || (moved && (!run || run in moved))) catchUp()
  // How long ago the last entry was, and how long the run is, is said once a second: for each it would be a frame more for each.
  if (!moved) say()
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
    // What a reader unfolded, chose or marked stays so.
    beforeAttributeUpdated: (name, node) => !(name === 'open' && node.tagName === 'DETAILS') && !(name === 'class' && 'row' in node.dataset),
    beforeNodeMorphed: node => !['tail', 'item', 'slider'].includes(node.id),
    beforeNodeRemoved: node => !node.classList?.contains('kept'),
  },
}
// Which view it is that the page shows: what was asked for before the slider moved is of another.
let view = 0
const isLive = () => $('[data-live]:not([data-live=none])')
// Does something for as long as it is wanted, and not twice at once.
const again = (state, act) => async () => {
  state.wanted = true
  if (state.busy) return
  state.busy = true
  try {
    while (state.wanted && !live.held && await act()) {}
  } catch { state.wanted = true } finally { state.busy = false }
}
const refresh = again(live, async () => {
  if (!isLive()) return
  await rest(Math.max(0, live.next + (document.hidden ? 9000 : 0) - Date.now()))
  live.wanted = false
  const begun = Date.now(), mine = view, item = $('#item'), part = isStale() ? (drawn.at = begun, 'strip') : 'live'
  // Of an inbox the item that is read is asked for, whichever comes first by now; and the rest, where it waits no more.
  const text = await shared(`${part} ${item?.dataset.at || location.pathname + location.search}`) || item && await shared('live /inbox')
  if (live.held) live.wanted = true
  else if (text && mine === view) put(parsed(text))
  // What is slow, since it is large or many tabs want it at once, is done less often: a tenth of the time at most. Where new
  // rows come by themselves, the rest can wait; and many tabs do not begin at the same moment.
  live.next = begun + Math.max($('#tail') ? 2000 + 1000 * Math.random() : 1000, 10 * (Date.now() - begun))
  return text
})
function put(fresh) {
  if (!$('[data-live]', fresh)) return
  const item = $('#item')
  if (item && $('#item', fresh)?.dataset.state !== item.dataset.state) {
    $('#changed').hidden = false
    for (const button of $$('[name=verdict]')) button.disabled = true
  }
  const strip = $('.pulse', fresh), newest = noted(fresh)
  if (strip && !isSliding()) {
    $('.pulse').replaceWith(strip)
    drawn.newest = newest
  }
  for (const part of ['[data-live]', '#bar nav']) Idiomorph.morph($(part), $(part, fresh), options)
  document.title = fresh.title
  buttons()
  tick()
}

const tail = {}
const atEnd = () => innerHeight + scrollY >= whole.scrollHeight - 60
const follow = again(tail, async () => {
  const list = $('#tail:not([data-still])')
  if (!list) return
  const run = list.dataset.tail.split('/').map(encodeURIComponent).join('/')
  tail.wanted = false
  const text = await shared(`live /runs/${run}/rows?after=${list.dataset.last}`)
  // Whoever moved the slider meanwhile has another list, which lacks other rows.
  if (text && !live.held && list.isConnected) add(list, parsed(`<ol>${text}</ol>`))
  else tail.wanted = true
  return text
})
const aged = () => $$('.fresh').forEach(row => row.classList.remove('fresh'))
function add(list, fresh) {
  const rows = [...$('ol', fresh).children]
  const last = +list.dataset.last, newest = Math.max(last, ...$$('li[id^="e-"]', fresh).map(row => +row.id.slice(2)))
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

const slide = $('#slide'), at = $('#at')
// When the strip above it was drawn, and up to which entry.
const drawn = { at: Date.now(), newest: slide?.max }
const isStale = () => slide && isLive() && !document.hidden && live.newest > drawn.newest && Date.now() > drawn.at + 10000
const isSliding = () => slide.matches(':active')
const noted = fresh => live.newest = +$('#slider', fresh)?.dataset.newest
// The run goes on, and the range with it: who is at its end stays there. Nothing moves in anybody's hand.
let end = slide?.max
function grow() {
  if (!slide || isSliding()) return
  if (live.newest > slide.max) {
    slide.max = at.max = live.newest
    $('.of').textContent = `of ${live.newest.toLocaleString('en')}`
  }
  if (isLive() && at.value === end && !at.matches(':focus')) slide.value = at.value = end = slide.max
}
if (slide) {
  slide.hidden = false
  let wait, round = 0
  const show = async now => {
    const mine = ++round, url = new URL(location), query = url.searchParams
    query.delete('before')
    if (now) query.delete('at')
    else query.set('at', slide.value)
    const fresh = await fetched(url)
    // The last one wins, whatever comes first.
    if (mine !== round || !fresh) return
    view++
    if (now) end = at.value
    history.replaceState(null, '', url)
    document.title = fresh.title
    const run = $('.run'), next = $('.run', fresh), parts = [...next.children], middle = parts.indexOf($('#slider', next))
    run.className = next.className
    run.dataset.live = next.dataset.live
    $$('.run > :not(#slider)').forEach(old => old.remove())
    slide.form.before(...parts.slice(0, middle))
    slide.form.after(...parts.slice(middle + 1))
    $('#command').textContent = $('#command', fresh).textContent
    noted(fresh)
    missed = 0
    buttons()
    // What came while it was read was told to the view before.
    if (isLive()) catchUp()
  }
  slide.oninput = () => {
    at.value = slide.value
    clearTimeout(wait)
    // The end is where it is now: it may be further on when this is shown.
    wait = setTimeout(show, 80, slide.value === slide.max)
  }
}
const step = by => {
  if (!slide) return
  slide.value = +slide.value + by
  slide.oninput()
}

let chosen
const here = () => chosen?.isConnected && chosen
const go = url => { location = url }
const open = selector => {
  const link = $(selector)
  link?.click()
  return link
}
function move(by) {
  const rows = $$('[data-row]')
  if (!rows.length) return
  chosen?.classList.remove('here')
  chosen = rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(chosen) + by))]
  chosen.classList.add('here')
  const link = $('a', chosen)
  link ? link.focus() : chosen.scrollIntoView({ block: 'nearest' })
  if ($('#peek').open) peek()
}
// Beside the list: the head of what a row leads to. A second press takes it away.
let looks = 0
async function peek(turn) {
  const mine = ++looks, dialog = $('#peek'), link = here() && $('a', here())
  if (!link || (turn && dialog.open)) return dialog.close()
  const fresh = await fetched(link.href), main = fresh && $('#main', fresh)
  // Who went on to another row, or took it away, wants this one no more.
  if (!main || mine !== looks) return
  $$('form, nav', main).forEach(part => part.remove())
  // Nothing in it is the page's own: neither a place to go to, nor the run that it is about.
  for (const name of ['id', 'data-live', 'data-run', 'data-row']) $$(`[${name}]`, main).forEach(part => part.removeAttribute(name))
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
  const now = +slide?.value, found = $$('.marks a').map(link => +new URL(link.href).searchParams.get('at'))
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
  a: () => choose('a', 'granted'),
  d: () => choose('d', 'denied'),
  '[': () => step(-1),
  ']': () => step(1),
  '.': () => { live.held = !live.held; say(); if (!live.held) catchUp() },
  c: () => copy('command'),
  '/': () => go('/search'),
  t: () => theme(true),
  '?': () => $('#help').showModal(),
}
function choose(key, verdict) {
  const form = $('form.answer'), link = here() && $(`[data-key=${key}]`, here())
  if (link) go(link.href)
  else if (form) { $('#reason').focus(); form.dataset.wanted = verdict }
}
addEventListener('keydown', event => {
  const { key, target } = event
  const typing = target.closest('input, textarea, select, dialog')
  if (key === 'Enter' && event.ctrlKey && target.form?.classList.contains('answer')) {
    const wanted = target.form.dataset.wanted || new URLSearchParams(location.search).get('verdict')
    const button = wanted && $(`[name=verdict][value="${CSS.escape(wanted)}"]:enabled`, target.form)
    if (button) target.form.requestSubmit(button)
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || localStorage.keys === 'off') return
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
  const isDark = (localStorage.theme || matchMedia('(prefers-color-scheme: dark)').matches && 'dark') === 'dark'
  if (turn) localStorage.theme = isDark ? 'light' : 'dark'
  if (localStorage.theme) whole.dataset.theme = localStorage.theme
}
$('#keys-on').checked = localStorage.keys !== 'off'
$('#keys-on').onchange = event => { localStorage.keys = event.target.checked ? 'on' : 'off' }
buttons()
theme()
setInterval(tick, 1000)

port.onmessage = ({ data }) => 'asked' in data ? answered(data) : heard(data)
addEventListener('pagehide', () => port.postMessage('bye'))
// A tab that comes back from the history has said goodbye.
addEventListener('pageshow', event => event.persisted && location.reload())

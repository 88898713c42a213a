import { ActionIcon, CloseButton, Menu, Tooltip, UnstyledButton, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { lazy, Suspense, useCallback, useEffect, useMemo, useState, type ReactNode } from 'react'
import { api, base, clearToken, onUnauthenticated, take, WeirError } from './api'
import { Boundary } from './parts/Boundary'
import { Failure, Loading } from './parts/common'
import { Icon, type IconName } from './parts/icons'
import { Login, restorePlace } from './pages/Login'
import { Runs } from './pages/Runs'
import { href, useRoute } from './route'
import { Caller, useCaller } from './caller'
import { t } from './strings'
import { useLoad } from './use'
import { Live, useRunList } from './list'
import { mayNotify, questionsOf, useNotifications, waitingStatuses } from './pages/questions'

const RunPage = lazy(() => import('./pages/Run'))
const Inbox = lazy(() => import('./pages/Inbox'))
const Chat = lazy(() => import('./pages/Chat'))
const Sessions = lazy(() => import('./pages/Sessions'))
const Flows = lazy(() => import('./pages/Flows'))
const Memory = lazy(() => import('./pages/Memory'))
const Files = lazy(() => import('./pages/Files'))
const Usage = lazy(() => import('./pages/Usage'))
const Palette = lazy(() => import('./parts/Palette'))
const Codes = lazy(() => import('./pages/Codes'))

/** How many pages a phone shows beside its menu. */
const onPhone = 4

const nav: { id: keyof typeof t.nav & IconName; page: () => ReactNode; group?: boolean }[] = [
  { id: 'runs', page: () => <Runs /> },
  { id: 'inbox', page: () => <Inbox /> },
  { id: 'chat', page: () => <Chat /> },
  { id: 'flows', page: () => <Flows />, group: true },
  { id: 'sessions', page: () => <Sessions /> },
  { id: 'memory', page: () => <Memory /> },
  { id: 'files', page: () => <Files /> },
  { id: 'usage', page: () => <Usage />, group: true },
]

/** The whole page: who is signed in, the menu, and the place that the address names. */
export function App() {
  const [signedOut, setSignedOut] = useState(false)
  useEffect(() => onUnauthenticated(() => setSignedOut(true)), [])
  useEffect(restorePlace, [])
  const me = useLoad((signal) => take(api.GET('/v1/me', { signal })), [signedOut])
  if (signedOut) return <Login done={() => setSignedOut(false)} />
  if (me.error && !me.data) return <Failure error={me.error} retry={me.reload} />
  if (!me.data) return <Loading />
  return (
    <Caller value={me.data}>
      <Shell />
    </Caller>
  )
}

function Shell() {
  const { path } = useRoute()
  const live = useRunList(waitingFilter, 200, mayNotify())
  const questions = useMemo(() => (live.loaded ? questionsOf(live.rows) : undefined), [live.rows, live.loaded])
  const waiting = questions?.length ?? 0
  useNotifications(questions)
  const place = path[0] ?? 'runs'
  const [seeking, setSeeking] = useState(false)
  const [failed, clearFailed] = useFailedAction()
  useEffect(() => {
    const onKey = (e: KeyboardEvent) => {
      if (e.key.toLowerCase() !== 'k' || !(e.ctrlKey || e.metaKey)) return
      e.preventDefault()
      setSeeking(true)
    }
    window.addEventListener('keydown', onKey)
    return () => window.removeEventListener('keydown', onKey)
  }, [])
  useEffect(() => {
    const name = place === 'runs' && path[1] ? path[1] : (t.nav[place as 'runs'] ?? '')
    document.title = `${waiting ? `(${waiting}) ` : ''}${name} – ${t.app}`
  }, [waiting, place, path])
  return (
    <Live value={live}><div className="shell">
      <a className="skip" href="#content" onClick={(e) => { e.preventDefault(); document.getElementById('content')?.focus() }}>
        {t.nav.skip}
      </a>
      <div className="side">
        <a className="brand" href={href(['runs'])}>
          <Mark />
          {t.app}
        </a>
        <button type="button" className="seek" onClick={() => setSeeking(true)}><Icon name="search" size={14} /><span className="grow">{t.palette.open}</span><kbd className="key">{isMac ? '⌘K' : 'Ctrl K'}</kbd></button>
        <nav aria-label={t.nav.main}>
          {nav.map((x, i) => (
            <a key={x.id} href={href([x.id])} aria-current={place === x.id ? 'page' : undefined} data-group={x.group} data-rare={i >= onPhone}>
              <Icon name={x.id} />
              <span className="label">{t.nav[x.id]}</span>
              {x.id === 'inbox' && waiting > 0 && <span className="badge">{waiting}</span>}
            </a>
          ))}
          <PhoneMenu place={place} seek={() => setSeeking(true)} />
        </nav>
        <div className="row foot">
          <SchemeButton />
          <a href="docs" className="small dim" target="_blank" rel="noreferrer">{t.nav.api}</a>
          <a href={href(['codes'])} className="small dim">{t.nav.codes}</a>
          <span className="grow" />
          <SignOutButton />
        </div>
      </div>
      {seeking && <Suspense fallback={null}><Palette pages={nav.map((x) => x.id)} close={() => setSeeking(false)} /></Suspense>}
      <main className="main" id="content" tabIndex={-1}>
        {failed && <div className="banner row" role="alert"><span className="grow">{failed.offline ? t.state.offline : failed.message} <span className="dim">{failed.hint}</span></span><CloseButton size="sm" aria-label={t.state.close} onClick={clearFailed} /></div>}
        {live.error?.offline && <div className="banner" role="alert">{t.state.offline}. {t.state.offlineHint}</div>}
        <Boundary key={path.join('/')}><Suspense fallback={<Loading />}>{place === 'runs' && path[1] ? <RunPage key={path[1]} id={path[1]} /> : place === 'codes' ? <Codes /> : (nav.find((x) => x.id === place) ?? nav[0]).page()}</Suspense></Boundary>
      </main>
    </div></Live>
  )
}

/** The last failure of what a button asked for, where nothing else shows it. */
function useFailedAction(): [WeirError | undefined, () => void] {
  const [failed, setFailed] = useState<WeirError>()
  useEffect(() => {
    const onFailure = (e: PromiseRejectionEvent) => {
      if (!(e.reason instanceof WeirError)) return
      e.preventDefault()
      setFailed(e.reason)
    }
    window.addEventListener('unhandledrejection', onFailure)
    return () => window.removeEventListener('unhandledrejection', onFailure)
  }, [])
  return [failed, useCallback(() => setFailed(undefined), [])]
}

const waitingFilter = { status: waitingStatuses }

const isMac = navigator.platform.startsWith('Mac')

/** On a phone, what the side of the page has and the row below has no room for. */
function PhoneMenu({ place, seek }: { place: string; seek: () => void }) {
  const signOut = useSignOut()
  const [scheme, changeScheme] = useScheme()
  const rare = nav.slice(onPhone)
  return (
    <Menu position="top-end">
      <Menu.Target>
        <UnstyledButton className="phone-menu" data-chosen={rare.some((x) => x.id === place) || place === 'codes'}><Icon name="more" /><span className="label">{t.nav.more}</span></UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item leftSection={<Icon name="search" size={14} />} onClick={seek}>{t.palette.open}</Menu.Item>
        {rare.map((x) => <Menu.Item key={x.id} component="a" href={href([x.id])} leftSection={<Icon name={x.id} size={14} />}>{t.nav[x.id]}</Menu.Item>)}
        <Menu.Item component="a" href="docs" target="_blank" rel="noreferrer" leftSection={<Icon name="link" size={14} />}>{t.nav.api}</Menu.Item>
        <Menu.Item component="a" href={href(['codes'])} leftSection={<Icon name="link" size={14} />}>{t.nav.codes}</Menu.Item>
        <Menu.Item onClick={changeScheme} leftSection={<Icon name="sun" size={14} />}>{scheme === 'dark' ? t.nav.light : t.nav.dark}</Menu.Item>
        {signOut && <Menu.Item onClick={signOut} leftSection={<Icon name="out" size={14} />}>{t.nav.signOut}</Menu.Item>}
      </Menu.Dropdown>
    </Menu>
  )
}

/** Signs out of what has signed the person in: a token, the issuer or a proxy. Undefined if nothing has. */
function useSignOut(): (() => Promise<void>) | undefined {
  const { signOut, signOutURL } = useCaller()
  if (!signOut || (signOut === 'proxy' && !signOutURL)) return undefined
  return async () => {
    clearToken()
    if (signOut === 'proxy') return location.assign(signOutURL)
    if (signOut === 'login') {
      const r = await fetch(`${base}/login/end`, { method: 'POST' }).catch(() => null)
      const { url } = r?.ok ? ((await r.json()) as { url: string }) : { url: '' }
      if (url) return location.assign(url)
    }
    location.reload()
  }
}

function SignOutButton() {
  const signOut = useSignOut()
  if (!signOut) return null
  return (
    <Tooltip label={t.nav.signOut}>
      <ActionIcon aria-label={t.nav.signOut} onClick={() => void signOut()}>
        <Icon name="out" />
      </ActionIcon>
    </Tooltip>
  )
}

/** The colour scheme, and what changes it to the other one. */
function useScheme(): ['light' | 'dark', () => void] {
  const { setColorScheme } = useMantineColorScheme()
  const scheme = useComputedColorScheme('light')
  return [scheme, () => setColorScheme(scheme === 'dark' ? 'light' : 'dark')]
}

function SchemeButton() {
  const [, change] = useScheme()
  return (
    <Tooltip label={t.nav.theme}>
      <ActionIcon aria-label={t.nav.theme} onClick={change}>
        <Icon name="sun" />
      </ActionIcon>
    </Tooltip>
  )
}

function Mark() {
  return (
    <svg width="20" height="20" viewBox="0 0 24 24" aria-hidden="true">
      <path d="M2 8c3-3 5-3 8 0s5 3 8 0l4-2v4l-4 2c-3 3-5 3-8 0s-5-3-8 0z" fill="var(--run)" />
      <path d="M2 16c3-3 5-3 8 0s5 3 8 0l4-2v3l-4 2c-3 3-5 3-8 0s-5-3-8 0z" fill="var(--run)" opacity="0.45" />
    </svg>
  )
}

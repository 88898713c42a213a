import { useCallback, useSyncExternalStore } from 'react'

/** The place in the page: it is in the fragment of the address, so that it needs nothing of the server. */
export interface Route {
  path: string[]
  query: URLSearchParams
}

function parse(hash: string): Route {
  const [path, query] = hash.replace(/^#\/?/, '').split('?')
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), query: new URLSearchParams(query ?? '') }
}

let current = { hash: location.hash, route: parse(location.hash) }

function snapshot(): Route {
  if (current.hash !== location.hash) current = { hash: location.hash, route: parse(location.hash) }
  return current.route
}

function subscribe(f: () => void) {
  window.addEventListener('hashchange', f)
  window.addEventListener('weir:route', f)
  return () => {
    window.removeEventListener('hashchange', f)
    window.removeEventListener('weir:route', f)
  }
}

export function useRoute(): Route {
  return useSyncExternalStore(subscribe, snapshot)
}

type Query = Record<string, string | number | string[] | undefined | null>

function search(q: URLSearchParams): string {
  const text = q.toString()
  return text ? '?' + text : ''
}

export function href(path: string[], query?: Query): string {
  const q = new URLSearchParams()
  for (const [k, v] of Object.entries(query ?? {})) {
    if (Array.isArray(v)) v.forEach((x) => q.append(k, x))
    else if (v !== undefined && v !== null && v !== '') q.set(k, String(v))
  }
  return '#/' + path.map(encodeURIComponent).join('/') + search(q)
}

export function go(to: string, replace = false) {
  if (replace) {
    history.replaceState(null, '', to)
    window.dispatchEvent(new Event('weir:route'))
  } else location.hash = to
}

/** Changes members of the query of the present place. Empty values remove a member. */
export function useQuery(): [URLSearchParams, (change: Query, replace?: boolean) => void] {
  const { path, query } = useRoute()
  const set = useCallback(
    (change: Query, replace = true) => {
      const next = new URLSearchParams(snapshot().query)
      for (const [k, v] of Object.entries(change)) {
        next.delete(k)
        if (Array.isArray(v)) v.forEach((x) => next.append(k, x))
        else if (v !== undefined && v !== null && v !== '') next.set(k, String(v))
      }
      go('#/' + path.map(encodeURIComponent).join('/') + search(next), replace)
    },
    [path],
  )
  return [query, set]
}

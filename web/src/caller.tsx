import { createContext, useContext, type ReactNode } from 'react'
import type { Schemas } from './api'

const Context = createContext<Schemas['Caller'] | null>(null)

export function Caller({ value, children }: { value: Schemas['Caller']; children: ReactNode }) {
  return <Context.Provider value={value}>{children}</Context.Provider>
}

/** Reports whether the caller's token allows a scope. */
export function useMay(scope: 'start' | 'answer' | 'admin'): boolean {
  const scopes = useContext(Context)?.scopes ?? []
  return scopes.includes(scope) || scopes.includes('admin')
}

export function useCaller() {
  return useContext(Context)!
}

import { useEffect, useState } from 'react'
import { api, take, type Schemas } from './api'

export type Code = Schemas['ErrorCode']

let loading: Promise<ReadonlyMap<string, Code>> | undefined

/** What the codes of errors mean. They are loaded once, when the first error is shown. */
export function useCodes(): ReadonlyMap<string, Code> | undefined {
  const [codes, setCodes] = useState<ReadonlyMap<string, Code>>()
  useEffect(() => {
    loading ??= take(api.GET('/v1/errors')).then((r) => new Map((r.codes ?? []).map((c) => [c.code, c])))
    loading.then(setCodes, () => (loading = undefined))
  }, [])
  return codes
}

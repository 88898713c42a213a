import { Button, Checkbox, PasswordInput } from '@mantine/core'
import { useState } from 'react'
import { accepts, api, base, clearToken, setToken, take } from '../api'
import { go } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'

export function Login({ done }: { done: () => void }) {
  const [secret, setSecret] = useState('')
  const [keep, setKeep] = useState(false)
  const [wrong, setWrong] = useState('')
  const way = useLoad((signal) => take(api.GET('/v1/sign-in', { signal })), [])
  const submit = async () => {
    try {
      if (!(await accepts(secret.trim()))) return setWrong(t.login.bad)
    } catch {
      return setWrong(t.state.offline)
    }
    setToken(secret.trim(), keep)
    done()
  }
  return (
    <main className="pad narrow" style={{ maxWidth: 440, paddingTop: 96 }}>
      <form className="card column gap" onSubmit={(e) => { e.preventDefault(); void submit() }}>
        <h1 style={{ margin: 0, fontSize: 16, lineHeight: '24px' }}>{t.login.title}</h1>
        {way.data?.oidc && (
          <>
            <Button component="a" href={`${base}/login/start`} onClick={keepPlace}>{t.login.withIssuer}</Button>
            <div className="dim">{t.login.or}</div>
          </>
        )}
        <div className="dim">{t.login.intro}</div>
        <div className="code">weir tokens create --user NAME --scope read,start,answer</div>
        <PasswordInput label={t.login.token} value={secret} onChange={(e) => setSecret(e.currentTarget.value)} error={wrong || undefined} autoComplete="off" required data-autofocus />
        <Checkbox label={t.login.keep} checked={keep} onChange={(e) => setKeep(e.currentTarget.checked)} />
        <Button type="submit" disabled={!secret.trim()}>{t.login.submit}</Button>
      </form>
    </main>
  )
}

const placeKey = 'weir.place'

/** Keeps the place in the page while the browser is at the issuer, which does not keep fragments. */
function keepPlace() {
  clearToken() // a token counts before who has signed in
  sessionStorage.setItem(placeKey, location.hash)
}

/** Returns to the place at which somebody began to sign in. */
export function restorePlace() {
  const hash = sessionStorage.getItem(placeKey)
  sessionStorage.removeItem(placeKey)
  if (hash && !location.hash) go(hash, true)
}

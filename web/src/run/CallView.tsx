import type { Schemas } from '../api/client'
import { count, plain } from '../format'
import { CopyButton, RunError, Section } from '../parts/common'
import { JsonTree } from '../parts/JsonTree'
import { MessageView, type Message } from '../parts/MessageView'
import { t } from '../strings'

interface Request {
  provider?: string
  model?: string
  system?: string
  messages?: Message[]
  tools?: { name: string; description?: string }[]
  [setting: string]: unknown
}

/** A model call: exactly what was sent, what was left out, and the answer. */
export function CallView({ call, cache }: { call: Schemas['CallReport']; cache?: Schemas['PromptCache'] }) {
  const sent = (call.sent ?? undefined) as Request | undefined
  const { provider, model, system, messages, tools, ...settings } = sent ?? {}
  const rest = Object.fromEntries(Object.entries(settings).filter(([, v]) => v !== null && v !== '' && v !== 0))
  return (
    <div className="column gap">
      <div className="row">
        <b className="mono cut grow">{call.call}</b>
        {sent && <CopyButton text={() => JSON.stringify(sent, null, 2)} label={t.run.copyJson} />}
      </div>
      <div className={call.proven ? 'small' : 'small dim'}>{call.proven ? '✓ ' + t.node.verified : t.node.unverified}</div>
      {!sent && <div className="dim">{t.node.onlyDigest} <span className="mono">{call.digest}</span></div>}
      {cache && <Cache c={cache} />}
      {sent && (
        <Section title={`${t.node.request}: ${[provider, model].filter(Boolean).join('/')}`}>
          <div className="column" style={{ gap: 8 }}>
            {system && <MessageView message={{ role: 'system', text: system }} />}
            {(messages ?? []).map((m, i) => <MessageView key={i} message={m} />)}
          </div>
        </Section>
      )}
      {tools && tools.length > 0 && (
        <Section title={t.node.tools}>
          <dl className="facts">
            {tools.map((x) => <div key={x.name} style={{ display: 'contents' }}><dt className="mono">{x.name}</dt><dd>{x.description}</dd></div>)}
          </dl>
        </Section>
      )}
      {Object.keys(rest).length > 0 && <Section title={t.node.settings}><div className="value"><JsonTree value={rest} /></div></Section>}
      {call.manifest != null && <Section title={t.node.left}><div className="value"><JsonTree value={call.manifest as object} /></div></Section>}
      {call.error && <RunError error={call.error} />}
      {call.answer != null && <Section title={t.node.answer}><Answer value={call.answer} /></Section>}
    </div>
  )
}

/** What a vendor's prompt cache had of the request, and where it differs from the call before. */
function Cache({ c }: { c: Schemas['PromptCache'] }) {
  return (
    <Section title={t.node.cache}>
      <dl className="facts">
        <dt>{t.node.cachedTokens}</dt><dd>{count(c.usage.cached)} {t.run.of} {count(c.usage.input)} {t.runs.tokens}</dd>
        <dt>{t.node.before}</dt><dd className="mono">{c.before || t.node.noBefore}</dd>
        {c.before && <><dt>{t.node.differs}</dt><dd>{c.place ? `${c.place}, ${t.node.byte} ${c.byte}` : t.node.continues} ({c.equal} {t.run.of} {c.of} {t.node.equal})</dd></>}
      </dl>
      {c.place && <div className="two"><div className="code">{c.was || '–'}</div><div className="code">{c.is || '–'}</div></div>}
    </Section>
  )
}

/** An answer is a message with what the vendor reported beside it. */
function Answer({ value }: { value: unknown }) {
  const { message, ...rest } = (typeof value === 'object' && value !== null ? value : {}) as { message?: unknown; [k: string]: unknown }
  if (!isMessage(message)) return <div className="code">{plain(value)}</div>
  return (
    <div className="column" style={{ gap: 8 }}>
      <MessageView message={message} />
      <div className="value"><JsonTree value={rest} /></div>
    </div>
  )
}

function isMessage(v: unknown): v is Message {
  return typeof v === 'object' && v !== null && 'role' in v
}

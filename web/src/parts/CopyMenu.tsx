import { ActionIcon, Menu } from '@mantine/core'
import { base } from '../api'
import { t } from '../strings'
import { copyText } from './common'
import { Icon } from './icons'

/** What a thing is called outside of the page. */
export interface Names {
  /** Its path in the API, with the query. */
  path?: string
  /** The body with which the path is posted; without it the path is read. It may refuse what the form has. */
  body?: () => unknown
  /** The command that prints it. */
  cli?: string | (() => string)
  json?: () => unknown
  /** Its place in the page; without it the address of the page. */
  link?: string
}

/** Quotes a text as one word of a shell. */
export function quoted(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** The items of a menu that copy a thing as link, JSON, command and request. */
export function CopyItems({ path, body, cli, json, link }: Names) {
  const address = () => (link === undefined ? location.href : location.href.slice(0, location.href.length - location.hash.length) + link)
  const copyJson = async () => copyText(JSON.stringify(await json!(), null, 2))
  return (
    <>
      <Menu.Item onClick={() => copyText(address())}>{t.run.copyLink}</Menu.Item>
      {json && <Menu.Item onClick={copyJson}>{t.run.copyJson}</Menu.Item>}
      {cli && <Menu.Item onClick={() => copyText(typeof cli === 'string' ? cli : cli())}>{t.run.copyCli}</Menu.Item>}
      {path && <Menu.Item onClick={() => copyText(curl(path, body))}>{t.run.copyCurl}</Menu.Item>}
    </>
  )
}

/** A request as a command. */
function curl(path: string, body?: () => unknown): string {
  const posted = body ? ` -H "Content-Type: application/json" -d ${quoted(JSON.stringify(body()))}` : ''
  return `curl -H "Authorization: Bearer $WEIR_TOKEN"${posted} ${quoted(`${base}/${path}`)}`
}

export function CopyMenu({ label, size, ...names }: Names & { label: string; size?: number }) {
  return (
    <Menu position="bottom-end">
      <Menu.Target><ActionIcon size={size} aria-label={`${t.run.more}: ${label}`}><Icon name="more" /></ActionIcon></Menu.Target>
      <Menu.Dropdown><CopyItems {...names} /></Menu.Dropdown>
    </Menu>
  )
}

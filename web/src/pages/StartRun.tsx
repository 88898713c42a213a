import { Button, Modal, TextInput } from '@mantine/core'
import { useState } from 'react'
import { api, newKey, take, WeirError, type Schemas } from '../api'
import { CopyMenu } from '../parts/CopyMenu'
import { Failure, Loading } from '../parts/common'
import { SchemaFields } from '../parts/QuestionForm'
import { go, href } from '../route'
import { t } from '../strings'
import { useLoad } from '../use'

/** The form that starts a run: a flow, its inputs, and a model. */
export function StartRun({ flow, close }: { flow?: string; close: () => void }) {
  const flows = useLoad((signal) => take(api.GET('/v1/flows', { signal })), [])
  const [name, setName] = useState(flow ?? '')
  const [inputs, setInputs] = useState<Record<string, unknown>>({})
  const [model, setModel] = useState('')
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<WeirError>()
  const [key] = useState(newKey)
  const list = flows.data?.flows ?? []
  const chosen: Schemas['FlowRow'] | undefined = list.find((f) => f.name === name) ?? list[0]
  const body = () => ({ flow: chosen!.name, inputs: inputs as never, model: model || undefined })
  const start = async () => {
    setBusy(true)
    setError(undefined)
    try {
      const made = await take(api.POST('/v1/runs', { params: { header: { 'Idempotency-Key': key + JSON.stringify([chosen?.name, inputs, model]).length } }, body: body() }))
      close()
      go(href(['runs', made.run]))
    } catch (e) {
      setError(e as WeirError)
      setBusy(false)
    }
  }
  return (
    <Modal opened onClose={close} title={t.start.title} closeButtonProps={{ 'aria-label': t.state.close }}>
      <form className="column gap" onSubmit={(e) => { e.preventDefault(); void start() }}>
        {flows.error && <Failure error={flows.error} retry={flows.reload} />}
        {!flows.data && !flows.error && <Loading />}
        {flows.data && <div>
          <label className="small" htmlFor="start-flow">{t.start.flow}</label>
          <select id="start-flow" className="select" value={chosen?.name ?? ''} onChange={(e) => { setName(e.currentTarget.value); setInputs({}) }}>
            {list.map((f) => <option key={f.name}>{f.name}</option>)}
          </select>
          {chosen?.description && <div className="small dim" style={{ marginTop: 4 }}>{chosen.description}</div>}
        </div>}
        {chosen && <SchemaFields key={chosen.name} schema={chosen.inputs as never} types={chosen.inputTypes} value={inputs} change={setInputs} />}
        <TextInput label={t.start.model} description={t.start.modelHint} value={model} onChange={(e) => setModel(e.currentTarget.value)} />
        {error && <Failure error={error} />}
        <div className="row"><span className="grow" />{chosen && <CopyMenu label={t.start.title} link={href(['runs'], { start: chosen.name })} path="v1/runs" body={body} />}<Button type="submit" loading={busy} disabled={!chosen}>{t.start.submit}</Button></div>
      </form>
    </Modal>
  )
}

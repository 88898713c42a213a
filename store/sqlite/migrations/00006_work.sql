-- +goose Up

-- Commits with their events in full, by the id that they are found by.
DROP VIEW journal;
CREATE VIEW commit_text (id, at, last, messages, events) AS
SELECT c.id, c.at, c.last, c.messages,
    CASE WHEN c.base IS NULL THEN c.events ELSE (
        WITH RECURSIVE
        leaf (path, i, atom, type) AS (
            SELECT t.fullkey, row_number() OVER (ORDER BY t.id) - 1, t.atom, t.type
            FROM run_commit b, json_tree(b.events) t
            WHERE b.id = CASE WHEN c.base < 0 THEN ((c.id >> 32) - (-c.base >> 4) << 32) + (-c.base & 15)
                WHEN c.base >> 32 THEN c.base ELSE (c.id >> 32 << 32) + c.base END AND t.type NOT IN ('object', 'array')
        ),
        pair (k, was, now) AS (
            SELECT f.key, f.value, iif(f.type = 'text' AND t.type = 'integer', rtrim(f.value, '0123456789') || t.value, t.value)
            FROM json_each(c.events, '$[0]') f, json_each(c.events, '$[0]') t
            WHERE f.key % 2 = 0 AND t.key = f.key + 1
        ),
        change (n, path, atom, quoted) AS (
            SELECT row_number() OVER (ORDER BY i), path, atom, quoted FROM (
                SELECT l.i, l.path, iif(l.type = 'text', p.now || substr(l.atom, length(p.was) + 1), p.now) AS atom,
                    l.type = 'text' AS quoted, min(p.k)
                FROM leaf l JOIN pair p ON typeof(p.was) = typeof(l.atom) AND (l.atom = p.was OR l.type = 'text'
                    AND substr(l.atom, 1, length(p.was)) = p.was
                    AND substr(l.atom, length(p.was) + 1, 1) IN ('/', ':'))
                WHERE l.i NOT IN (SELECT value FROM json_each(c.events) WHERE key % 2 = 1)
                GROUP BY l.i
                UNION ALL
                SELECT l.i, l.path, x.value, x.type = 'text', 0
                FROM json_each(c.events) k
                JOIN json_each(c.events) x ON x.key = k.key + 1
                JOIN leaf l ON l.i = k.value
                WHERE k.key % 2 = 1
            )
        ),
        step (n, doc) AS (
            SELECT 0, b.events FROM run_commit b WHERE b.id = CASE WHEN c.base < 0 THEN ((c.id >> 32) - (-c.base >> 4) << 32) + (-c.base & 15)
                WHEN c.base >> 32 THEN c.base ELSE (c.id >> 32 << 32) + c.base END
            UNION ALL
            SELECT s.n + 1, CASE WHEN h.quoted THEN json_set(s.doc, h.path, h.atom)
                ELSE json_set(s.doc, h.path, json(h.atom)) END
            FROM step s JOIN change h ON h.n = s.n + 1
        )
        SELECT doc FROM step ORDER BY n DESC LIMIT 1
    ) END
FROM run_commit c;

-- Commits for people with the sqlite3 shell: events in full. Those that a run shares
-- with its base are the base's.
CREATE VIEW journal (run, seq, at, events) AS
SELECT r.id, c.id & 0xffffffff, r.created + c.at, c.events
FROM run_row r JOIN commit_text c ON c.id > r.num << 32 AND c.id < (r.num + 1) << 32;

-- The views that follow are what chain_of_work and chain_of_work_step are made
-- of: each a JSON document a run, DISTINCT so that it is made once.

-- The events that say what was done: [number, time, kind, what of it], with all
-- values and messages that they refer to in their places.
CREATE VIEW work_event (run, doc) AS
SELECT DISTINCT r.id, (
    WITH RECURSIVE
    up (num, base, own, upto) AS (
        SELECT r.num, r.base, coalesce(r.base_seq, 0), 1 << 32
        UNION ALL
        SELECT b.num, b.base, coalesce(b.base_seq, 0), min(up.own, up.upto) FROM up CROSS JOIN run_row b ON b.num = up.base
    ),
    doc (id, at, last, events) AS MATERIALIZED (
        SELECT t.id, t.at + o.created, t.last, t.events
        FROM up CROSS JOIN run_row o ON o.num = up.num
        CROSS JOIN commit_text t ON t.id > (up.num << 32) + up.own AND t.id <= (up.num << 32) + min(up.upto, (1 << 32) - 1)
        WHERE up.upto > up.own
    ),
    event (pos, at, id, type, body) AS (
        SELECT d.last - json_array_length(d.events) + 1 + e.key, d.at, d.id, e.value ->> '$.type', e.value
        FROM doc d, json_each(d.events) e
    ),
    resolved (pos, at, id, type, depth, body) AS (
        SELECT pos, at, id, type, 0, CASE type
            WHEN 'node.started' THEN json_object('node', body ->> '$.node', 'attempt', body ->> '$.attempt')
            WHEN 'node.expanded' THEN json_object('node', body ->> '$.node', 'fork', body ->> '$.fork')
            WHEN 'node.completed' THEN json_object('node', body ->> '$.node', 'us', body ->> '$.us', 'state', body -> '$.state', 'metadata', body -> '$.metadata')
            WHEN 'node.failed' THEN json_object('node', body ->> '$.node', 'us', body ->> '$.us', 'error', body -> '$.error', 'metadata', body -> '$.metadata')
            WHEN 'node.cancelled' THEN json_object('node', body ->> '$.node')
            WHEN 'step.recorded' THEN body
            ELSE json_object('fingerprint', body ->> '$.fingerprint', 'state', body -> '$.state') END
        FROM event WHERE type IN ('run.started', 'run.forked', 'node.started', 'node.expanded', 'node.completed', 'node.failed',
            'node.cancelled', 'step.recorded')
        UNION ALL
        SELECT pos, at, id, type, depth + 1, CASE WHEN instr(body, '{"$v":') > 0 THEN (
                SELECT replace(s.body, '{"$v":' || x.ref || '}', coalesce((SELECT j.body FROM value_json j WHERE j.id = x.ref), 'null'))
                FROM (SELECT CAST(substr(s.body, instr(s.body, '{"$v":') + 6, 20) AS INTEGER) AS ref) x)
            ELSE (
                SELECT replace(s.body, '{"$m":' || x.ref || '}', coalesce((
                    SELECT json_quote(coalesce(m.content, (SELECT j.body ->> '$' FROM value_json j WHERE j.id = m.value))) FROM message m
                    WHERE m.id = CASE WHEN x.ref LIKE '[%' THEN (x.ref ->> '$[0]' << 32) + (x.ref ->> '$[1]') ELSE (
                        WITH span (context, position, count) AS (
                            SELECT CASE json_array_length(q.list) WHEN 3 THEN q.list ->> '$[0]' WHEN 2 THEN q.main WHEN 1 THEN q.main ELSE NULL END,
                                CASE json_array_length(q.list) WHEN 3 THEN q.list ->> '$[1]' ELSE q.first + (q.list ->> '$[0]') END, q.list
                            FROM (SELECT '[' || k.messages || ']' AS list, coalesce((SELECT y.context FROM session y WHERE y.num = o.session),
                                    (SELECT y.id FROM context y WHERE y.run = o.num AND y.name = 'main')) AS main, coalesce(o.first, 0) AS first
                                FROM run_commit k JOIN run_row o ON o.num = k.id >> 32 WHERE k.id = s.id) q
                        )
                        SELECT coalesce((SELECT (context << 32) + position + x.ref FROM span WHERE context IS NOT NULL), (
                            SELECT ((count ->> ('$[' || t.key || ']')) << 32) + (count ->> ('$[' || (t.key + 1) || ']')) + x.ref
                                - (SELECT coalesce(sum(z.value), 0) FROM json_each(count) z WHERE z.key % 3 = 2 AND z.key < t.key)
                            FROM span, json_each(count) t WHERE t.key % 3 = 0
                            AND x.ref >= (SELECT coalesce(sum(z.value), 0) FROM json_each(count) z WHERE z.key % 3 = 2 AND z.key < t.key)
                            ORDER BY t.key DESC LIMIT 1))
                    ) END), 'null'))
                FROM (SELECT substr(s.body, instr(s.body, '{"$m":') + 6,
                    instr(substr(s.body, instr(s.body, '{"$m":') + 6), '}') - 1) AS ref) x)
            END
        FROM resolved s WHERE depth < 10000 AND (instr(body, '{"$v":') > 0 OR instr(body, '{"$m":') > 0)
    )
    SELECT json_group_array(json(line)) FROM (
        SELECT json_array(pos, at, type, json(body)) AS line FROM resolved
        WHERE instr(body, '{"$v":') = 0 AND instr(body, '{"$m":') = 0 ORDER BY pos)
)
FROM run_row r;

-- With what of it forks lanes, [path, lane, number of the event], and what its flows
-- declare of the state, [number of the event, key, reducer, initial value, number of
-- the event that another flow begins with].
CREATE VIEW work_plan (run, doc, forks, flows, declared) AS
SELECT DISTINCT w.run, w.doc, (
    SELECT json_group_array(json_array(path, begun, times)) FROM (
        SELECT e.value ->> '$[3].node' AS path, min(e.value ->> '$[0]') AS begun, count(*) AS times FROM json_each(w.doc) e
        WHERE e.value ->> '$[2]' = 'node.expanded' AND e.value ->> '$[3].fork' GROUP BY 1)
), (
    SELECT json_group_array(json_array(pos, fingerprint, next)) FROM (
        SELECT e.value ->> '$[0]' AS pos, e.value ->> '$[3].fingerprint' AS fingerprint,
            lead(e.value ->> '$[0]', 1, 1 << 62) OVER (ORDER BY e.value ->> '$[0]') AS next
        FROM json_each(w.doc) e WHERE e.value ->> '$[2]' IN ('run.started', 'run.forked'))
), (
    SELECT json_group_array(json(line)) FROM (
        SELECT json_array(f.value ->> '$[0]', y.key, coalesce(y.value ->> '$.reducer', ''), y.value -> '$.initial',
            lead(f.value ->> '$[0]', 1, 1 << 62) OVER (PARTITION BY y.key ORDER BY f.value ->> '$[0]')) AS line
        FROM json_each(w.doc) f JOIN flow p ON p.fingerprint = f.value ->> '$[3].fingerprint',
            json_each(CAST(p.normal AS TEXT), '$.state') y
        WHERE f.value ->> '$[2]' IN ('run.started', 'run.forked') AND y.type = 'object')
)
FROM work_event w;

-- With the lane of each event: [number, time, kind, what of it, lane, node]. A lane is
-- the path of the iteration, or of the loop, that has a state of its own until it is
-- done: it sees what the run's state was before and its own changes.
CREATE VIEW work_lane (run, doc, forks, flows, declared) AS
SELECT DISTINCT w.run, (
    SELECT json_group_array(json(line)) FROM (
        SELECT json_array(pos, at, type, json(body), lane, path) AS line
        FROM (
            SELECT e.value ->> '$[0]' AS pos, e.value ->> '$[1]' AS at, e.value ->> '$[2]' AS type, e.value -> '$[3]' AS body,
                e.value ->> '$[3].node' AS path, coalesce(CASE WHEN f.value ->> '$[2]' > 1 THEN f.value ->> '$[0]' ELSE (f.value ->> '$[0]') || '#'
                    || CAST(substr(e.value ->> '$[3].node', length(f.value ->> '$[0]') + 2) AS INTEGER) END, '') AS lane,
                row_number() OVER (PARTITION BY e.key ORDER BY length(f.value ->> '$[0]') DESC) AS nearest
            FROM json_each(w.doc) e LEFT JOIN json_each(w.forks) f
                ON substr(e.value ->> '$[3].node', 1, length(f.value ->> '$[0]') + 1) = (f.value ->> '$[0]') || '#'
        )
        WHERE nearest = 1 ORDER BY pos)
), w.forks, w.flows, w.declared
FROM work_plan w;

-- Writes to the state, [number of the event, number in it, lane, key, deleted, value,
-- reducer], and which lanes a lane sees, [lane, the other, up to which event].
CREATE VIEW work_write (run, doc, flows, writes, lanes) AS
SELECT DISTINCT w.run, w.doc, w.flows, (
    SELECT json_group_array(json(line)) FROM (
        SELECT json_array(c.pos, c.i, c.lane, c.key, c.gone, c.value, iif(c.plain, '', coalesce(d.value ->> '$[2]', ''))) AS line
        FROM (
            SELECT d.value ->> '$[0]' AS pos, 0 AS i, '' AS lane, d.value ->> '$[1]' AS key, 0 AS gone, d.value -> '$[3]' AS value, 1 AS plain
            FROM json_each(w.declared) d WHERE d.value ->> '$[0]' = 1 AND coalesce(d.value -> '$[3]', 'null') <> 'null'
            UNION ALL
            SELECT e.value ->> '$[0]', 1 + s.id, '', s.key, 0,
                CASE WHEN s.type = 'text' THEN json_quote(s.value) WHEN s.type IN ('true', 'false', 'null') THEN s.type ELSE s.value END, 1
            FROM json_each(w.doc) e, json_each(e.value, '$[3].state') s
            WHERE e.value ->> '$[2]' = 'run.started' AND json_type(e.value, '$[3].state') = 'object'
            UNION ALL
            SELECT e.value ->> '$[0]', 1 + s.id, e.value ->> '$[4]', s.value ->> '$.key', coalesce(s.value ->> '$.delete', 0), coalesce(s.value -> '$.value', 'null'),
                e.value ->> '$[2]' = 'run.forked'
            FROM json_each(w.doc) e, json_each(e.value, '$[3].state') s
            WHERE e.value ->> '$[2]' IN ('run.forked', 'node.completed') AND json_type(e.value, '$[3].state') = 'array'
        ) c LEFT JOIN json_each(w.declared) d ON d.value ->> '$[1]' = c.key AND d.value ->> '$[0]' <= c.pos AND c.pos < d.value ->> '$[4]'
        ORDER BY c.pos, c.i)
), (
    WITH RECURSIVE
    lane (name, sees, upto) AS (
        SELECT DISTINCT e.value ->> '$[4]', e.value ->> '$[4]', 1 << 62 FROM json_each(w.doc) e
        UNION
        SELECT l.name, coalesce((
                SELECT CASE WHEN g.value ->> '$[2]' > 1 THEN g.value ->> '$[0]' ELSE (g.value ->> '$[0]') || '#'
                    || CAST(substr(f.value ->> '$[0]', length(g.value ->> '$[0]') + 2) AS INTEGER) END
                FROM json_each(w.forks) g WHERE substr(f.value ->> '$[0]', 1, length(g.value ->> '$[0]') + 1) = (g.value ->> '$[0]') || '#'
                ORDER BY length(g.value ->> '$[0]') DESC LIMIT 1), ''), min(l.upto, f.value ->> '$[1]')
        FROM lane l CROSS JOIN json_each(w.forks) f ON l.sees = f.value ->> '$[0]'
            OR substr(l.sees, 1, length(f.value ->> '$[0]') + 1) = (f.value ->> '$[0]') || '#'
            AND instr(substr(l.sees, length(f.value ->> '$[0]') + 2), '/') = 0
    )
    SELECT json_group_array(json_array(name, sees, upto)) FROM lane
)
FROM work_lane w;

-- [lane, key, from, to, value]: the state of a lane has that value under key from the
-- event of number from on, up to the one of number to.
CREATE VIEW work_state (run, doc, flows, state) AS
SELECT DISTINCT w.run, w.doc, w.flows, (
    WITH
    seen (lane, n, pos, key, gone, value, how, first) AS (
        SELECT l.value ->> '$[0]', c.key, c.value ->> '$[0]', c.value ->> '$[3]', c.value ->> '$[4]', c.value ->> '$[5]', c.value ->> '$[6]',
            c.value ->> '$[4]' OR c.value ->> '$[6]' IN ('', 'replace')
        FROM json_each(w.writes) c JOIN json_each(w.lanes) l ON c.value ->> '$[2]' = l.value ->> '$[1]' AND c.value ->> '$[0]' <= l.value ->> '$[2]'
    ),
    -- What stood there before combines with a write or, at the first of a part, does not.
    written AS (
        SELECT *, sum(first) OVER (PARTITION BY lane, key ORDER BY n) AS part FROM seen
    ),
    fold (lane, key, n, pos, value) AS (
        SELECT lane, key, n, pos, CASE
            WHEN gone THEN NULL
            WHEN first THEN value
            WHEN how = 'append' THEN '[' || coalesce(group_concat(CASE WHEN gone OR first AND value = 'null' THEN NULL
                WHEN json_type(value) <> 'array' THEN value ELSE nullif(substr(value, 2, length(value) - 2), '') END, ',') OVER grown, '') || ']'
            WHEN how = 'merge' THEN '{' || coalesce(group_concat(CASE WHEN gone OR json_type(value) <> 'object' THEN NULL
                WHEN substr(value, 1, 6) = '{"$":{' THEN nullif(substr(value, 7, length(value) - 8), '')
                ELSE nullif(substr(value, 2, length(value) - 2), '') END, ',') OVER grown, '') || '}'
            WHEN how = 'max' THEN json_quote(max(iif(gone, NULL, value ->> '$')) OVER grown)
            WHEN how = 'min' THEN json_quote(min(iif(gone, NULL, value ->> '$')) OVER grown)
            WHEN how = 'sum' THEN json_quote(sum(iif(gone, NULL, value ->> '$')) OVER grown)
            ELSE value END || iif(how = 'merge' AND NOT first, ' ', '') -- some members are there twice
        FROM written WINDOW grown AS (PARTITION BY lane, key, part ORDER BY n)
    )
    SELECT json_group_array(json(line)) FROM (
        SELECT json_array(lane, key, pos, until, iif(substr(value, -1) <> ' ', value, '' || (
            SELECT json_group_object(name, json(body)) FROM (
                SELECT m.key AS name, max(m.id), CASE m.type WHEN 'text' THEN json_quote(m.value) WHEN 'true' THEN 'true'
                    WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE m.value END AS body
                FROM json_each(q.value) m GROUP BY m.key ORDER BY m.key)))) AS line
        FROM (
            SELECT lane, key, pos, value, lead(pos, 1, 1 << 62) OVER (PARTITION BY lane, key ORDER BY n) AS until FROM fold) q
        WHERE value IS NOT NULL ORDER BY lane, key)
)
FROM work_write w;

-- [node, its attempt, lane, number of the event that started it, when, of the one that
-- ended it, when, status, microseconds, ai_metadata, error, flow, place in the flow,
-- code that was written for it].
CREATE VIEW work_node (run, state, doc) AS
SELECT DISTINCT w.run, w.state, (
    SELECT json_group_array(json(line)) FROM (
        SELECT json_array(n.path, n.attempt, n.lane, n.pos, n.at, n.ended, n.ended_at, n.status, n.us, json(n.metadata), n.error, f.value ->> '$[1]', (
                WITH RECURSIVE bare (rest, out) AS (
                    SELECT n.path, ''
                    UNION ALL
                    SELECT iif(instr(rest, '#'), substr(rest, instr(rest, '#') + instr(substr(rest, instr(rest, '#')) || '/', '/') - 1), ''),
                        out || iif(instr(rest, '#'), substr(rest, 1, instr(rest, '#') - 1), rest)
                    FROM bare WHERE rest <> ''
                )
                SELECT '$.nodes."' || replace(out, '/', '".with.body.nodes."') || '"' FROM bare WHERE rest = ''
            ), n.code) AS line
        FROM (
            SELECT path, min(lane) AS lane, min(pos) AS pos, min(at) AS at, max(iif(type = 'node.started', coalesce(body ->> '$.attempt', 1), NULL)) AS attempt,
                max(iif(ends, pos, NULL)) AS ended, max(iif(ends, at, NULL)) AS ended_at,
                CASE max(iif(ends, type, NULL)) WHEN 'node.completed' THEN 'success' WHEN 'node.failed' THEN 'failed' WHEN 'node.cancelled' THEN 'cancelled'
                    ELSE iif(turn < turns, 'cancelled', 'running') END AS status,
                max(iif(ends, body ->> '$.us', NULL)) AS us, max(iif(ends, body -> '$.metadata.ai_metadata', NULL)) AS metadata,
                max(iif(ends, body ->> '$.error.message', NULL)) AS error,
                substr(max(iif(type = 'step.recorded' AND body ->> '$.number' = 5 AND body ->> '$.status' = 'success',
                    printf('%020d', pos) || (body ->> '$.code'), NULL)), 21) AS code
            FROM (
                SELECT *, type IN ('node.completed', 'node.failed', 'node.cancelled') AS ends,
                    sum(type = 'node.started') OVER (PARTITION BY path ORDER BY pos) AS turn, sum(type = 'node.started') OVER (PARTITION BY path) AS turns
                FROM (
                    SELECT e.value ->> '$[0]' AS pos, e.value ->> '$[1]' AS at, e.value ->> '$[2]' AS type, e.value -> '$[3]' AS body,
                        e.value ->> '$[4]' AS lane, e.value ->> '$[5]' AS path
                    FROM json_each(w.doc) e WHERE e.value ->> '$[2]' IN ('node.started', 'node.completed', 'node.failed', 'node.cancelled', 'step.recorded'))
            )
            WHERE turn > 0 GROUP BY path, turn
        ) n JOIN json_each(w.flows) f ON f.value ->> '$[0]' < n.pos AND n.pos <= f.value ->> '$[2]' ORDER BY n.pos)
)
FROM work_state w;

-- The audit record of a run, an attempt of a node a row. input_context is the state
-- before it, output_result the state after it; inside a lane both are the lane's.
-- An object whose only key begins with $ stands in another, under the key $.
-- code_executed is the code in the flow, else what was written for it. Times are Unix
-- milliseconds, execution_time is in milliseconds.
CREATE VIEW chain_of_work (execution_id, node_id, node_type, code_executed, input_context, output_result, execution_time, status,
    ai_metadata, seq, attempt, started, ended, error) AS
SELECT w.run, n.value ->> '$[0]',
    (SELECT CAST(f.normal AS TEXT) ->> ((n.value ->> '$[12]') || '.type') FROM flow f WHERE f.fingerprint = n.value ->> '$[11]'),
    coalesce((SELECT CAST(f.normal AS TEXT) ->> ((n.value ->> '$[12]') || '.with.code') FROM flow f WHERE f.fingerprint = n.value ->> '$[11]'),
        n.value ->> '$[13]'),
    (SELECT json_group_object(s.value ->> '$[1]', json(s.value ->> '$[4]')) FROM json_each(w.state) s
        WHERE s.value ->> '$[0]' = n.value ->> '$[2]' AND s.value ->> '$[2]' < n.value ->> '$[3]' AND s.value ->> '$[3]' > n.value ->> '$[3]'),
    iif(n.value ->> '$[5]' IS NULL, NULL, (SELECT json_group_object(s.value ->> '$[1]', json(s.value ->> '$[4]')) FROM json_each(w.state) s
        WHERE s.value ->> '$[0]' = n.value ->> '$[2]' AND s.value ->> '$[2]' <= n.value ->> '$[5]' AND s.value ->> '$[3]' > n.value ->> '$[5]')),
    coalesce((n.value ->> '$[8]') / 1000.0, (n.value ->> '$[6]') - (n.value ->> '$[4]')),
    n.value ->> '$[7]', nullif(n.value -> '$[9]', 'null'), n.key + 1, n.value ->> '$[1]', n.value ->> '$[4]', n.value ->> '$[6]', n.value ->> '$[10]'
FROM work_node w CROSS JOIN json_each(w.doc) n;

-- The steps that nodes took to their results. cost_usd is in US dollars.
CREATE VIEW chain_of_work_step (execution_id, node_id, sequence, step_number, attempt_number, agent_name, input_data, output_data,
    generated_code, status, error_message, execution_time_ms, model_used, tokens_input, tokens_output, cost_usd, sandbox_id) AS
SELECT w.run, t.value ->> '$[3].node', row_number() OVER (PARTITION BY w.run ORDER BY t.key), t.value ->> '$[3].number',
    t.value ->> '$[3].attempt', t.value ->> '$[3].name',
    t.value -> '$[3].input', t.value -> '$[3].output', t.value ->> '$[3].code', t.value ->> '$[3].status', t.value ->> '$[3].error',
    coalesce(t.value ->> '$[3].us', 0) / 1000.0, t.value ->> '$[3].model', coalesce(t.value ->> '$[3].usage.input', 0),
    coalesce(t.value ->> '$[3].usage.output', 0), coalesce(t.value ->> '$[3].usage.cost', 0) / 1000000.0, t.value ->> '$[3].sandbox'
FROM work_event w CROSS JOIN json_each(w.doc) t WHERE t.value ->> '$[2]' = 'step.recorded';

-- +goose Up
-- Views for people. Their columns are those of the views of the same names on SQLite. The
-- functions below name no schema: each runs with the search path of the migration.

-- The JSON of digested bytes. PostgreSQL has no text with the character NUL: it is shown as
-- U+FFFD.
-- +goose StatementBegin
CREATE FUNCTION weir_json(data bytea) RETURNS json LANGUAGE sql STABLE STRICT AS $$
    SELECT CASE WHEN strpos(t, '\u0000') = 0 THEN t
        ELSE regexp_replace(t, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g') END::json
    FROM convert_from(data, 'UTF8') t
$$;
-- +goose StatementEnd

-- The events of a run with the past that it shares, in order.
-- +goose StatementBegin
CREATE FUNCTION weir_events(of_run bigint) RETURNS TABLE (number bigint, at bigint, event json)
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
    WITH RECURSIVE up AS (
        SELECT r.num, r.base, r.base_seq, 9223372036854775807 AS upto FROM run r WHERE r.num = of_run
        UNION ALL
        SELECT b.num, b.base, b.base_seq, least(up.base_seq, up.upto) FROM up JOIN run b ON b.num = up.base
    )
    SELECT c.first + e.ordinality - 1, c.at, e.value
    FROM up
    JOIN run_commit c ON c.run = up.num AND c.seq > up.base_seq AND c.seq <= up.upto
    CROSS JOIN json_array_elements(weir_json(c.payload)) WITH ORDINALITY e
    ORDER BY 1
$$;
-- +goose StatementEnd

-- An object of a user whose only key begins with "$" is stored in another object, under the
-- key "$". This returns the object of the user.
-- +goose StatementBegin
CREATE FUNCTION weir_unwrap(value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT CASE WHEN starts_with(value, '{"$":{') THEN substr(value, 6, length(value) - 6) ELSE value END
$$;
-- +goose StatementEnd

-- What a reducer makes of a key's value (NULL: none) and a written value. Both are JSON.
-- +goose StatementBegin
CREATE FUNCTION weir_reduce(reducer text, old text, value text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    combined text;
BEGIN
    IF reducer = 'append' THEN
        value := CASE WHEN starts_with(value, '[') THEN value ELSE '[' || value || ']' END;
        IF old IS NULL OR old IN ('null', '[]') THEN
            RETURN value;
        ELSIF NOT starts_with(old, '[') THEN
            old := '[' || old || ']';
        END IF;
        RETURN CASE WHEN value = '[]' THEN old ELSE left(old, -1) || ',' || substr(value, 2) END;
    ELSIF old IS NULL OR old = 'null' THEN
        RETURN value;
    ELSIF reducer = 'merge' THEN
        SELECT '{' || string_agg(to_json(m.key)::text || ':' || m.value, ',' ORDER BY m.key COLLATE "C") || '}' INTO combined FROM (
            SELECT DISTINCT ON (x.key) x.key, x.value::text AS value FROM (
                SELECT 1 AS later, b.key, b.value FROM json_each(weir_unwrap(value)::json) b
                UNION ALL
                SELECT 0, a.key, a.value FROM json_each(weir_unwrap(old)::json) a) x
            ORDER BY x.key, x.later DESC) m;
        combined := coalesce(combined, '{}');
        RETURN CASE WHEN starts_with(combined, '{"$') AND (SELECT count(*) FROM json_object_keys(combined::json)) = 1
            THEN '{"$":' || combined || '}' ELSE combined END;
    ELSIF reducer = 'max' THEN
        RETURN CASE WHEN value::float8 > old::float8 THEN value ELSE old END;
    ELSIF reducer = 'min' THEN
        RETURN CASE WHEN value::float8 < old::float8 THEN value ELSE old END;
    ELSIF reducer = 'sum' THEN
        IF (old || value) ~ '^[-0-9]+$' AND old::numeric + value::numeric BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
            RETURN (old::numeric + value::numeric)::text;
        END IF;
        combined := (old::float8 + value::float8)::text;
        RETURN CASE WHEN combined ~ '[.e]' THEN combined ELSE combined || '.0' END;
    END IF;
    RETURN value;
END
$$;
-- +goose StatementEnd

-- A state is an object of JSON texts by key. Each change is {"key": ..., "value": text} or has
-- no value if it removes the key.
-- +goose StatementBegin
CREATE FUNCTION weir_apply(state jsonb, changes jsonb, reducers jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE SET search_path FROM CURRENT AS $$
DECLARE
    c jsonb;
    name text;
BEGIN
    FOR c IN SELECT * FROM jsonb_array_elements(changes) LOOP
        name := c ->> 'key';
        IF c ? 'value' THEN
            state := state || jsonb_build_object(name, weir_reduce(reducers ->> name, state ->> name, c ->> 'value'));
        ELSE
            state := state - name;
        END IF;
    END LOOP;
    RETURN state;
END
$$;
-- +goose StatementEnd

-- The changes that an event has, in the form of weir_apply.
-- +goose StatementBegin
CREATE FUNCTION weir_changes(list json) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(jsonb_agg(jsonb_build_object('key', c.value ->> 'key')
            || CASE WHEN c.value ->> 'delete' = 'true' THEN '{}' ELSE jsonb_build_object('value', coalesce((c.value -> 'value')::text, 'null')) END
            ORDER BY c.ordinality), '[]')
    FROM json_array_elements(list) WITH ORDINALITY c
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION weir_state_json(state jsonb) RETURNS json LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT coalesce('{' || string_agg(to_json(s.key)::text || ':' || s.value, ',' ORDER BY s.key COLLATE "C") || '}', '{}')::json FROM jsonb_each_text(state) s
$$;
-- +goose StatementEnd

-- The lane that a node at a path works in: the nearest iteration around it that has a state
-- of its own, "" for the state of the run.
-- +goose StatementBegin
CREATE FUNCTION weir_lane(states jsonb, path text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    WHILE strpos(path, '/') > 0 LOOP
        path := regexp_replace(path, '/[^/]*$', '');
        IF states ? path THEN
            RETURN path;
        END IF;
    END LOOP;
    RETURN '';
END
$$;
-- +goose StatementEnd

-- A member of the definition of the node at a path. forks and iterations are not in the flow.
-- +goose StatementBegin
CREATE FUNCTION weir_node(flow jsonb, path text, VARIADIC member text[]) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT flow #>> (string_to_array('nodes/' || replace(regexp_replace(path, '#[0-9]+', '', 'g'), '/', '/with/body/nodes/'), '/') || member)
$$;
-- +goose StatementEnd

-- The attempts of the nodes of a run, computed from its events: the rows of chain_of_work.
-- +goose StatementBegin
CREATE FUNCTION weir_work(of_run bigint) RETURNS TABLE (node_id text, node_type text, code_executed text, input_context json,
    output_result json, execution_time float8, status text, ai_metadata json, seq integer, attempt integer, started bigint, ended bigint, error text)
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    x record;
    e json;
    kind text;
    path text;
    lane text;
    definition jsonb := '{}';
    reducers jsonb := '{}';
    states jsonb := '{"": {}}';  -- by lane
    written jsonb := '{}';       -- changes by lane, for a loop whose iterations continue one another's lane
    forks jsonb := '{}';         -- by path of a composite: the state that its lanes start with, and the lanes
    running jsonb := '{}';       -- attempts that have not ended, by path
    w jsonb;
    changes jsonb;
    count integer := 0;
BEGIN
    FOR x IN SELECT v.number, v.at, v.event FROM weir_events(of_run) v LOOP
        e := x.event;
        kind := e ->> 'type';
        path := e ->> 'node';
        IF kind IN ('run.started', 'run.forked') THEN
            SELECT weir_json(f.normal)::jsonb INTO definition FROM flow f WHERE f.fingerprint = e ->> 'fingerprint';
            definition := coalesce(definition, '{}');
            SELECT coalesce(jsonb_object_agg(k.key, k.value ->> 'reducer'), '{}') INTO reducers
            FROM jsonb_each(coalesce(definition -> 'state', '{}')) k WHERE k.value ->> 'reducer' <> '';
            IF kind = 'run.started' THEN
                SELECT jsonb_build_object('', coalesce(jsonb_object_agg(k.key, (k.value -> 'initial')::text) FILTER (WHERE (k.value -> 'initial')::text <> 'null'), '{}')
                    || coalesce((SELECT jsonb_object_agg(s.key, s.value::text) FROM json_each(weir_unwrap((e -> 'state')::text)::json) s), '{}'))
                INTO states
                FROM json_each(weir_json((SELECT f.normal FROM flow f WHERE f.fingerprint = e ->> 'fingerprint')) -> 'state') k;
                states := coalesce(states, '{"": {}}');
            ELSIF json_typeof(e -> 'state') = 'array' THEN
                states := jsonb_set(states, '{""}', weir_apply(states -> '', weir_changes(e -> 'state'), '{}'));
            END IF;
            CONTINUE;
        END IF;
        IF kind = 'node.expanded' AND e ->> 'fork' = 'true' THEN
            w := states -> weir_lane(states, path);
            IF forks ? path THEN
                w := forks -> path -> 'state';
                FOR lane IN SELECT jsonb_array_elements_text(forks -> path -> 'lanes') LOOP
                    w := weir_apply(w, coalesce(written -> lane, '[]'), reducers);
                END LOOP;
            END IF;
            forks := forks || jsonb_build_object(path, jsonb_build_object('state', w, 'lanes', '[]'::jsonb));
        ELSIF kind = 'iteration.started' THEN
            lane := e ->> 'scope';
            path := regexp_replace(lane, '#[0-9]+$', '');
            IF forks ? path THEN
                states := states || jsonb_build_object(lane, forks -> path -> 'state');
                forks := jsonb_set(forks, ARRAY[path, 'lanes'], forks -> path -> 'lanes' || to_jsonb(lane));
            END IF;
        ELSIF kind = 'step.recorded' AND running ? path AND e ->> 'number' = '5' AND e ->> 'status' = 'success' THEN
            running := jsonb_set(running, ARRAY[path, 'code'], coalesce(to_jsonb(e ->> 'code'), 'null'));
        END IF;
        CONTINUE WHEN kind NOT IN ('node.started', 'node.completed', 'node.failed', 'node.cancelled');

        w := running -> path;
        lane := weir_lane(states, path);
        IF kind = 'node.completed' AND json_typeof(e -> 'state') = 'array' THEN
            changes := weir_changes(e -> 'state');
            states := states || jsonb_build_object(lane, weir_apply(states -> lane, changes, reducers));
            IF lane <> '' THEN
                written := written || jsonb_build_object(lane, coalesce(written -> lane, '[]') || changes);
            END IF;
        END IF;
        IF forks ? path THEN -- the iterations of the attempt are over
            forks := forks - path;
            SELECT jsonb_object_agg(s.key, s.value) INTO states FROM jsonb_each(states) s WHERE NOT starts_with(s.key, path || '#');
            SELECT coalesce(jsonb_object_agg(s.key, s.value), '{}') INTO written FROM jsonb_each(written) s WHERE NOT starts_with(s.key, path || '#');
            SELECT coalesce(jsonb_object_agg(s.key, s.value), '{}') INTO forks FROM jsonb_each(forks) s WHERE NOT starts_with(s.key, path || '#');
        END IF;
        IF w IS NOT NULL THEN
            node_id := path;
            node_type := w ->> 'type';
            code_executed := coalesce(w ->> 'text', w ->> 'code');
            input_context := weir_state_json(w -> 'before');
            seq := w ->> 'seq';
            attempt := w ->> 'attempt';
            started := w ->> 'at';
            IF kind = 'node.started' THEN -- a fork has restarted it
                status := 'cancelled';
                output_result := NULL; execution_time := NULL; ai_metadata := NULL; ended := NULL; error := NULL;
            ELSE
                status := CASE kind WHEN 'node.completed' THEN 'success' WHEN 'node.failed' THEN 'failed' ELSE 'cancelled' END;
                output_result := weir_state_json(states -> lane);
                ended := x.at;
                execution_time := coalesce((e ->> 'us')::float8 / 1000, ended - started);
                ai_metadata := CASE WHEN json_typeof(e #> '{metadata,ai_metadata}') <> 'null' THEN e #> '{metadata,ai_metadata}' END;
                error := e #>> '{error,message}';
            END IF;
            RETURN NEXT;
            running := running - path;
        END IF;
        IF kind = 'node.started' THEN
            count := count + 1;
            running := running || jsonb_build_object(path, jsonb_build_object('seq', count, 'attempt', coalesce((e ->> 'attempt')::integer, 1), 'at', x.at,
                'before', states -> lane, 'type', weir_node(definition, path, 'type'), 'text', weir_node(definition, path, 'with', 'code')));
        END IF;
    END LOOP;
    FOR path, w IN SELECT r.key, r.value FROM jsonb_each(running) r ORDER BY (r.value ->> 'seq')::integer LOOP
        node_id := path;
        node_type := w ->> 'type';
        code_executed := coalesce(w ->> 'text', w ->> 'code');
        input_context := weir_state_json(w -> 'before');
        seq := w ->> 'seq';
        attempt := w ->> 'attempt';
        started := w ->> 'at';
        status := 'running';
        output_result := NULL; execution_time := NULL; ai_metadata := NULL; ended := NULL; error := NULL;
        RETURN NEXT;
    END LOOP;
END
$$;
-- +goose StatementEnd

CREATE VIEW chain_of_work AS
SELECT r.id AS execution_id, w.node_id, w.node_type, w.code_executed, w.input_context, w.output_result, w.execution_time, w.status,
    w.ai_metadata, w.seq, w.attempt, w.started, w.ended, w.error
FROM run r CROSS JOIN LATERAL weir_work(r.num) w;

CREATE VIEW chain_of_work_step AS
SELECT r.id AS execution_id, s.event ->> 'node' AS node_id, s.sequence, (s.event ->> 'number')::integer AS step_number,
    (s.event ->> 'attempt')::integer AS attempt_number, s.event ->> 'name' AS agent_name, s.event -> 'input' AS input_data,
    s.event -> 'output' AS output_data, s.event ->> 'code' AS generated_code, s.event ->> 'status' AS status,
    s.event ->> 'error' AS error_message, coalesce((s.event ->> 'us')::float8, 0) / 1000 AS execution_time_ms, s.event ->> 'model' AS model_used,
    coalesce((s.event #>> '{usage,input}')::bigint, 0) AS tokens_input, coalesce((s.event #>> '{usage,output}')::bigint, 0) AS tokens_output,
    coalesce((s.event #>> '{usage,cost}')::float8, 0) / 1000000 AS cost_usd, s.event ->> 'sandbox' AS sandbox_id
FROM run r CROSS JOIN LATERAL (
    SELECT e.event, row_number() OVER (ORDER BY e.number) AS sequence FROM weir_events(r.num) e WHERE e.event ->> 'type' = 'step.recorded') s;

CREATE VIEW journal AS
SELECT r.id AS run, c.seq, c.at, weir_json(c.payload) AS events
FROM run r JOIN run_commit c ON c.run = r.num;

CREATE VIEW message_text AS
SELECT r.id AS run, x.name AS context, m.position, m.role, weir_json(substring(c.payload FROM m.start + 1 FOR m.length)) ->> 'text' AS content
FROM message m
JOIN run r ON r.num = m.run
JOIN run_commit c ON c.run = m.run AND c.seq = m.seq
JOIN context x ON x.id = m.context;

CREATE VIEW session_message AS
SELECT m.id, s.id AS session, r.id AS run, m.role, weir_json(substring(c.payload FROM m.start + 1 FOR m.length)) ->> 'text' AS content,
    m.tokens AS token_count, c.at AS created_at, m.position, r.round, r.status
FROM session s
JOIN message m ON m.context = s.context
JOIN run r ON r.num = m.run
JOIN run_commit c ON c.run = m.run AND c.seq = m.seq;

CREATE VIEW session_state AS
SELECT s.id AS session, c.key, weir_json(c.value) AS value, c.round, r.id AS run, nullif(c.sender, '') AS changed_by, c.at AS changed_at
FROM session s
JOIN session_change c ON c.session = s.num
LEFT JOIN run r ON r.num = c.run
WHERE c.value IS NOT NULL AND NOT EXISTS (SELECT 1 FROM session_change n WHERE n.session = c.session AND n.key = c.key AND n.num > c.num);

CREATE VIEW user_state AS
SELECT u.user_id AS "user", u.flow, u.key, weir_json(u.value) AS value, u.version, r.id AS run, nullif(u.sender, '') AS changed_by, u.at AS changed_at
FROM user_value u LEFT JOIN run r ON r.num = u.run
WHERE u.value IS NOT NULL;

CREATE VIEW remembered AS
SELECT i.id, s.namespace, s.user_id AS "user", s.session, i.kind, nullif(i.key, '') AS key, i.text, nullif(i.tags, '') AS tags, i.at, i.written, i.version,
    nullif(i.run_id, '') AS run
FROM recall_item i JOIN recall_scope s ON s.num = i.scope;

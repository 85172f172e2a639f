-- The sender's file: what the caller knows, and how it came to know it.
--
-- A state is what the last decision says; nothing else can move it. Rows refer to an operation by its small
-- number, in order of preparation, so that what is worked on together lies together; its identity is random
-- text and stands in one place only. Every key is given by us: a hidden rowid would be one more key for
-- INSERT OR REPLACE to destroy a row by. Times are UTC milliseconds.

-- What this file is, among its copies: the one row that a backup or a restore changes.
CREATE TABLE store (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    incarnation INTEGER NOT NULL,     -- 1 at birth; one more with each restore
    acts INTEGER NOT NULL,            -- how many transactions wrote to it: a copy with fewer is older
    paused_why TEXT);                 -- NULL: it is live

-- The one table of moves, copied from rules/states.py by the library that made this file.
CREATE TABLE legal_move (
    source TEXT NOT NULL, target TEXT NOT NULL, cause TEXT NOT NULL,
    PRIMARY KEY (source, target, cause)) WITHOUT ROWID;

-- What receivers guaranteed when operations were prepared, each text once.
CREATE TABLE policy (number INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE);

-- One intended effect. State, version and effect_id are a reading of the last decision; all else never changes.
CREATE TABLE operation (
    number INTEGER PRIMARY KEY,
    operation_id TEXT NOT NULL UNIQUE,
    digest TEXT NOT NULL,
    work_id TEXT NOT NULL,
    target TEXT NOT NULL,
    epoch INTEGER NOT NULL CHECK (typeof(epoch) = 'integer' AND epoch >= 1),
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    compensates TEXT,            -- NULL: an original; otherwise the effect id that it amends
    subject TEXT NOT NULL,
    scope TEXT NOT NULL,         -- tenant, project, environment, as a JSON list
    policy INTEGER NOT NULL REFERENCES policy,
    prepared_ms INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'prepared' CHECK (state IN (
        'prepared', 'unknown', 'pending', 'partial', 'conflict',
        'confirmed', 'rejected', 'failed', 'not_applied', 'written_off', 'revoked')),
    version INTEGER NOT NULL DEFAULT 1,
    effect_id TEXT);             -- NULL: no decision names one effect
CREATE INDEX operation_unresolved ON operation (target, kind, subject, scope)
    WHERE state IN ('unknown', 'pending', 'partial', 'conflict') AND compensates IS NULL;

-- A need that a person declared to be another one, though an equivalent operation may be unresolved.
CREATE TABLE distinct_need (
    operation INTEGER PRIMARY KEY REFERENCES operation,
    authorized_by TEXT NOT NULL CHECK (authorized_by <> ''),
    reason TEXT NOT NULL CHECK (reason <> ''),
    authorized_ms INTEGER NOT NULL);

-- One approval binds a compensation to one effect of one operation at one version.
CREATE TABLE compensation (
    operation INTEGER PRIMARY KEY REFERENCES operation,
    original INTEGER NOT NULL REFERENCES operation,
    effect_id TEXT NOT NULL,
    ordinal INTEGER NOT NULL,    -- 1, and one more only after the last ended without effect
    version INTEGER NOT NULL,    -- of the original, as the approver saw it
    approver TEXT NOT NULL CHECK (approver <> ''),
    approved_ms INTEGER NOT NULL,
    UNIQUE (original, effect_id, ordinal));
CREATE INDEX compensation_effect ON compensation (effect_id);

-- One sending. The row is written before the request leaves; how the call went, after.
CREATE TABLE attempt (
    operation INTEGER NOT NULL REFERENCES operation,
    attempt INTEGER NOT NULL,
    announced_ms INTEGER NOT NULL,
    transport TEXT CHECK (transport IN (         -- NULL: the sender did not live to say how the call went
        'not_sent', 'sent', 'response_received', 'transport_failed')),
    said TEXT,                                   -- NULL: nothing; what an adapter said of a failed call
    PRIMARY KEY (operation, attempt)) WITHOUT ROWID;

-- One time that a keyed receiver was asked for its stored receipt, written once it had answered.
CREATE TABLE lookup (
    operation INTEGER NOT NULL REFERENCES operation,
    asked INTEGER NOT NULL,      -- the how-many-th
    attempts INTEGER NOT NULL,   -- how many sendings were announced by then
    found INTEGER NOT NULL CHECK (found IN (0, 1)),
    asked_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, asked)) WITHOUT ROWID;

-- A receipt, whether or not it decided anything.
CREATE TABLE receipt (
    operation INTEGER NOT NULL REFERENCES operation,
    received INTEGER NOT NULL,   -- the how-many-th
    origin TEXT NOT NULL CHECK (origin IN ('reply', 'lookup', 'operator')),
    attempt INTEGER,             -- the sending that it replies to; NULL: it came otherwise
    actor TEXT,                  -- who handed it in; NULL: no person did
    reference TEXT,              -- where its original can be found; NULL: no person handed it in
    body TEXT NOT NULL,
    received_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, received),
    FOREIGN KEY (operation, attempt) REFERENCES attempt,
    CHECK ((origin = 'reply') = (attempt IS NOT NULL)),
    CHECK ((origin = 'operator') = (coalesce(actor, '') <> '')),
    CHECK ((origin = 'operator') = (coalesce(length(reference), 0) BETWEEN 1 AND 500))) WITHOUT ROWID;

-- A change of state with its cause and its evidence, in one row. Appending it is the only way to move an operation.
CREATE TABLE decision (
    operation INTEGER NOT NULL REFERENCES operation,
    version INTEGER NOT NULL,    -- the version that it makes
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN (
        'announced', 'never_sent', 'receipt', 'evidence', 'contradiction', 'authority', 'withdrawn')),
    actor TEXT NOT NULL CHECK (actor <> ''),
    verdict TEXT,                -- NULL: no snapshot was classified
    effect_id TEXT,              -- NULL: the decision names no effect
    evidence TEXT,               -- the whole snapshot; NULL: no snapshot was needed
    receipt INTEGER,             -- the how-many-th receipt decided; NULL: none did
    reason TEXT,                 -- a person's words; NULL: none are needed
    decided_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, version),
    FOREIGN KEY (operation, receipt) REFERENCES receipt (operation, received),
    CHECK ((cause = 'receipt') = (receipt IS NOT NULL)),
    CHECK (cause <> 'evidence' OR coalesce(evidence IS NOT NULL AND (
        (verdict = 'unique_exact_match' AND target = 'confirmed')
        OR (verdict = 'terminal_absence' AND target = 'not_applied')), FALSE)),
    CHECK (cause NOT IN ('authority', 'withdrawn') OR coalesce(reason, '') <> '')) WITHOUT ROWID;

-- Evidence kept without a decision.
CREATE TABLE observation (
    operation INTEGER NOT NULL REFERENCES operation,
    seen INTEGER NOT NULL,       -- the how-many-th
    verdict TEXT NOT NULL,
    evidence TEXT NOT NULL,
    observed_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, seen)) WITHOUT ROWID;

-- Evidence against a final state, once for each digest. It raises the version and leaves the state.
CREATE TABLE incident (
    operation INTEGER NOT NULL REFERENCES operation,
    version INTEGER NOT NULL,    -- the version that it makes
    digest TEXT NOT NULL,
    evidence TEXT NOT NULL,
    noticed_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, version),
    UNIQUE (operation, digest)) WITHOUT ROWID;

-- A request to close, written before it leaves: closing can stop an original that is still on its way.
CREATE TABLE close_request (
    operation INTEGER NOT NULL REFERENCES operation,
    asked INTEGER NOT NULL,      -- the how-many-th
    purpose TEXT NOT NULL CHECK (purpose <> ''),
    authorized_by TEXT NOT NULL CHECK (authorized_by <> ''),
    asked_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, asked)) WITHOUT ROWID;

-- What the rules say, once more, for whoever writes past the library.

CREATE TRIGGER operation_starts_prepared BEFORE INSERT ON operation
WHEN NEW.state <> 'prepared' OR NEW.version <> 1 OR NEW.effect_id IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'operation: starts prepared at version 1'); END;

CREATE TRIGGER operation_follows_its_rows BEFORE UPDATE ON operation
WHEN NOT EXISTS (SELECT 1 FROM decision d
                 WHERE d.operation = OLD.number AND d.version = OLD.version + 1 AND d.version = NEW.version
                   AND d.source = OLD.state AND d.target = NEW.state AND d.effect_id IS NEW.effect_id)
 AND NOT EXISTS (SELECT 1 FROM incident i
                 WHERE i.operation = OLD.number AND i.version = OLD.version + 1 AND i.version = NEW.version
                   AND OLD.state = NEW.state AND OLD.effect_id IS NEW.effect_id)
BEGIN SELECT RAISE(ABORT, 'operation: moved by a decision or an incident alone'); END;

CREATE TRIGGER decision_is_lawful BEFORE INSERT ON decision
WHEN NOT EXISTS (SELECT 1 FROM operation o
                 JOIN legal_move m ON m.source = o.state AND m.target = NEW.target AND m.cause = NEW.cause
                 WHERE o.number = NEW.operation AND o.state = NEW.source AND o.version + 1 = NEW.version)
BEGIN SELECT RAISE(ABORT, 'decision: no legal move from this state and version'); END;

CREATE TRIGGER decision_moves_no_paused_store BEFORE INSERT ON decision
WHEN EXISTS (SELECT 1 FROM store WHERE paused_why IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'decision: the store is paused'); END;

CREATE TRIGGER decision_announces_no_second_need BEFORE INSERT ON decision
WHEN NEW.cause = 'announced'
 AND EXISTS (SELECT 1 FROM operation n
             JOIN operation o ON o.target = n.target AND o.kind = n.kind AND o.subject = n.subject
                             AND o.scope = n.scope AND o.number <> n.number AND o.compensates IS NULL
             WHERE n.number = NEW.operation AND n.compensates IS NULL
               AND o.state IN ('unknown', 'pending', 'partial', 'conflict')
               AND NOT EXISTS (SELECT 1 FROM distinct_need d WHERE d.operation = n.number))
BEGIN SELECT RAISE(ABORT, 'decision: an equivalent operation is unresolved'); END;

CREATE TRIGGER decision_announces_what_is_bound BEFORE INSERT ON decision
WHEN NEW.cause = 'announced'
 AND EXISTS (SELECT 1 FROM operation WHERE number = NEW.operation AND compensates IS NOT NULL)
 AND NOT EXISTS (SELECT 1 FROM compensation a JOIN operation o ON o.number = a.original
                 WHERE a.operation = NEW.operation AND o.state = 'confirmed' AND o.version = a.version)
BEGIN SELECT RAISE(ABORT, 'decision: the compensation is not bound to a confirmed effect'); END;

CREATE TRIGGER decision_has_its_receipt BEFORE INSERT ON decision
WHEN NEW.receipt IS NOT NULL
 AND NOT EXISTS (SELECT 1 FROM receipt WHERE operation = NEW.operation AND received = NEW.receipt)
BEGIN SELECT RAISE(ABORT, 'decision: the receipt that decides is not there'); END;

CREATE TRIGGER decision_moves AFTER INSERT ON decision
BEGIN
    UPDATE operation SET state = NEW.target, version = NEW.version, effect_id = NEW.effect_id
    WHERE number = NEW.operation;
END;

CREATE TRIGGER incident_is_lawful BEFORE INSERT ON incident
WHEN NOT EXISTS (SELECT 1 FROM operation o WHERE o.number = NEW.operation AND o.version + 1 = NEW.version
                 AND NOT EXISTS (SELECT 1 FROM legal_move m WHERE m.source = o.state))
BEGIN SELECT RAISE(ABORT, 'incident: only against a final state, at its next version'); END;

CREATE TRIGGER incident_raises_the_version AFTER INSERT ON incident
BEGIN UPDATE operation SET version = NEW.version WHERE number = NEW.operation; END;

CREATE TRIGGER compensation_binds_a_confirmed_effect BEFORE INSERT ON compensation
WHEN NOT EXISTS (SELECT 1 FROM operation c JOIN operation o ON o.number = NEW.original
                 WHERE c.number = NEW.operation AND c.compensates = NEW.effect_id AND c.state = 'prepared'
                   AND o.state = 'confirmed' AND o.version = NEW.version AND o.effect_id = NEW.effect_id)
BEGIN SELECT RAISE(ABORT, 'compensation: binds a confirmed effect at its version'); END;

CREATE TRIGGER compensation_is_the_only_live_one BEFORE INSERT ON compensation
WHEN EXISTS (SELECT 1 FROM compensation a JOIN operation c ON c.number = a.operation
             JOIN operation n ON n.number = NEW.original
             WHERE c.target = n.target AND c.epoch = n.epoch AND a.effect_id = NEW.effect_id
               AND c.state NOT IN ('not_applied', 'rejected', 'revoked'))
BEGIN SELECT RAISE(ABORT, 'compensation: the effect has a live one'); END;

CREATE TRIGGER attempt_follows_its_announcement BEFORE INSERT ON attempt
WHEN NEW.transport IS NOT NULL
  OR NOT EXISTS (SELECT 1 FROM operation WHERE number = NEW.operation AND state = 'unknown')
BEGIN SELECT RAISE(ABORT, 'attempt: no request leaves before unknown is written'); END;

CREATE TRIGGER attempt_follows_no_close BEFORE INSERT ON attempt
WHEN EXISTS (SELECT 1 FROM close_request WHERE operation = NEW.operation)
  OR EXISTS (SELECT 1 FROM store WHERE paused_why IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'attempt: nothing is sent after a close, or from a paused store'); END;

CREATE TRIGGER attempt_ends_once BEFORE UPDATE ON attempt WHEN OLD.transport IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'attempt: how the call went is written once'); END;

CREATE TRIGGER store_only_grows_older BEFORE UPDATE ON store
WHEN NEW.incarnation < OLD.incarnation OR NEW.acts < OLD.acts
  OR (OLD.paused_why IS NOT NULL AND NEW.paused_why IS NULL)
BEGIN SELECT RAISE(ABORT, 'store: its counts only rise, and nothing unpauses it'); END;

-- Missions: what was agreed, what was seen of the world, and what may be called finished.
--
-- What a mission's operations came to stands in `operation` alone; a task points to them by its work item.

CREATE TABLE mission (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    contract TEXT NOT NULL,          -- what is to be achieved, as canonical JSON
    contract_version INTEGER NOT NULL,
    world INTEGER NOT NULL,          -- the generation of the world: what was seen in an older one is stale
    state TEXT NOT NULL CHECK (state IN ('running', 'verifying', 'finished', 'failed')),
    revision INTEGER NOT NULL,       -- one more with each change of this row
    opened_ms INTEGER NOT NULL,
    ended_by TEXT,                   -- NULL: it goes on
    reason TEXT,
    ended_ms INTEGER,
    CHECK ((state IN ('finished', 'failed')) = (ended_ms IS NOT NULL)),
    CHECK ((ended_by IS NULL) = (ended_ms IS NULL)),
    CHECK ((reason IS NULL) = (ended_ms IS NULL)));

CREATE TABLE task (
    mission INTEGER NOT NULL REFERENCES mission,
    name TEXT NOT NULL,
    mandatory INTEGER NOT NULL CHECK (mandatory IN (0, 1)),
    limit_ms INTEGER NOT NULL,       -- how old what was seen for it may be
    work_id TEXT NOT NULL UNIQUE,    -- the work item of its operations
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'succeeded', 'failed')),
    contract_version INTEGER,        -- the contract that it was done for; NULL: it is not done
    checked_by TEXT,                 -- the reference of its check; NULL: there is none
    PRIMARY KEY (mission, name)) WITHOUT ROWID;

-- What was seen of the world for a task.
CREATE TABLE task_observation (
    mission INTEGER NOT NULL,
    task TEXT NOT NULL,
    seen INTEGER NOT NULL,           -- the how-many-th
    reference TEXT NOT NULL CHECK (reference <> ''),
    digest TEXT NOT NULL CHECK (digest <> ''),
    world INTEGER NOT NULL,
    contract_version INTEGER NOT NULL,
    observed_ms INTEGER NOT NULL,
    PRIMARY KEY (mission, task, seen),
    FOREIGN KEY (mission, task) REFERENCES task) WITHOUT ROWID;

-- Where the evidence of a task's success can be found, and the digest of what is there.
CREATE TABLE task_evidence (
    mission INTEGER NOT NULL,
    task TEXT NOT NULL,
    given INTEGER NOT NULL,          -- the how-many-th
    contract_version INTEGER NOT NULL,
    reference TEXT NOT NULL CHECK (reference <> ''),
    digest TEXT NOT NULL CHECK (digest <> ''),
    PRIMARY KEY (mission, task, given),
    FOREIGN KEY (mission, task) REFERENCES task) WITHOUT ROWID;

-- A verifier's word about a mission as its digest was. The last one counts.
CREATE TABLE verification (
    mission INTEGER NOT NULL REFERENCES mission,
    given INTEGER NOT NULL,          -- the how-many-th
    verifier TEXT NOT NULL CHECK (verifier <> ''),
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    digest TEXT NOT NULL,
    verified_ms INTEGER NOT NULL,
    PRIMARY KEY (mission, given)) WITHOUT ROWID;

-- What the rules say, once more, for whoever writes past the library.

CREATE TRIGGER mission_starts_running BEFORE INSERT ON mission
WHEN NEW.state <> 'running' OR NEW.revision <> 1
BEGIN SELECT RAISE(ABORT, 'mission: starts running, at its first revision'); END;

CREATE TRIGGER mission_moves_forward BEFORE UPDATE ON mission
WHEN OLD.ended_ms IS NOT NULL OR NEW.revision <> OLD.revision + 1
  OR NEW.world < OLD.world OR NEW.contract_version < OLD.contract_version
BEGIN SELECT RAISE(ABORT, 'mission: what ended stays ended, and its numbers only rise'); END;

CREATE TRIGGER mission_finishes_over_no_unknown BEFORE UPDATE ON mission
WHEN NEW.state = 'finished'
 AND (OLD.state <> 'verifying'
   OR EXISTS (SELECT 1 FROM task WHERE mission = NEW.number AND mandatory = 1 AND state <> 'succeeded')
   OR EXISTS (SELECT 1 FROM operation o JOIN task t ON t.mission = NEW.number
              LEFT JOIN compensation c ON c.operation = o.number
              LEFT JOIN operation p ON p.number = c.original
              WHERE t.work_id IN (o.work_id, p.work_id)
                AND o.state IN ('unknown', 'pending', 'partial', 'conflict')))
BEGIN SELECT RAISE(ABORT, 'mission: finished only when verified, done, and over no unknown'); END;

CREATE TRIGGER task_starts_open BEFORE INSERT ON task
WHEN NEW.state <> 'open' OR NEW.contract_version IS NOT NULL OR NEW.checked_by IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'task: starts open'); END;

CREATE TRIGGER task_succeeds_with_evidence BEFORE UPDATE ON task
WHEN NEW.state = 'succeeded'
 AND (coalesce(NEW.checked_by, '') = '' OR NEW.contract_version IS NULL
   OR NOT EXISTS (SELECT 1 FROM task_evidence e WHERE e.mission = NEW.mission AND e.task = NEW.name
                  AND e.contract_version = NEW.contract_version))
BEGIN SELECT RAISE(ABORT, 'task: succeeds with a check and evidence alone'); END;

-- Missions: what is to be reached, what its tasks show, and what a verifier said. Rows are only added; the
-- row of the mission itself is the one that moves. An operation belongs to a task by its work item.

CREATE TABLE mission (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    opened_ms INTEGER NOT NULL,
    contract_version INTEGER NOT NULL,
    world INTEGER NOT NULL,      -- the generation: one more whenever the world may have changed
    counts_from_ms INTEGER NOT NULL,  -- when this world and contract began: a look before that is of another
    revision INTEGER NOT NULL,   -- one more with each change of this row
    state TEXT NOT NULL CHECK (state IN ('running', 'verifying', 'finished', 'failed')),
    ended_by TEXT,               -- NULL: it is not ended
    reason TEXT,                 -- NULL: it did not fail
    ended_ms INTEGER,
    CHECK ((state IN ('finished', 'failed')) = (ended_ms IS NOT NULL)),
    CHECK ((coalesce(ended_by, '') <> '') = (ended_ms IS NOT NULL)),
    CHECK ((state = 'failed') = (coalesce(reason, '') <> '')));

-- What is to be reached, in canonical JSON; the newest version holds.
CREATE TABLE contract (
    mission INTEGER NOT NULL REFERENCES mission,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    set_by TEXT NOT NULL CHECK (set_by <> ''),
    set_ms INTEGER NOT NULL,
    PRIMARY KEY (mission, version)) WITHOUT ROWID;

CREATE TABLE task (
    number INTEGER PRIMARY KEY,
    mission INTEGER NOT NULL REFERENCES mission,
    name TEXT NOT NULL CHECK (name <> ''),
    mandatory INTEGER NOT NULL CHECK (mandatory IN (0, 1)),
    limit_ms INTEGER NOT NULL CHECK (limit_ms >= 1),  -- how old what was seen of it may be
    work_id TEXT NOT NULL UNIQUE,
    since INTEGER NOT NULL,      -- the version of the contract that brought it
    UNIQUE (mission, name));

-- Which operations belong to a task, and the compensations of those. Entered by the file itself.
CREATE TABLE task_operation (
    operation INTEGER PRIMARY KEY REFERENCES operation,
    task INTEGER NOT NULL REFERENCES task);
CREATE INDEX task_operation_task ON task_operation (task);

-- Under which contract an operation was commanded: one that is not under today's is not sent.
CREATE TABLE command (
    operation INTEGER NOT NULL REFERENCES task_operation,
    contract_version INTEGER NOT NULL,
    commanded_by TEXT NOT NULL CHECK (commanded_by <> ''),
    commanded_ms INTEGER NOT NULL,
    PRIMARY KEY (operation, contract_version)) WITHOUT ROWID;

-- What was seen of a task, in which world and under which contract; the last one counts.
CREATE TABLE sighting (
    task INTEGER NOT NULL REFERENCES task,
    seen INTEGER NOT NULL,       -- the how-many-th
    contract_version INTEGER NOT NULL,
    world INTEGER NOT NULL,
    reference TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 500),
    digest TEXT NOT NULL,
    observer TEXT NOT NULL CHECK (observer <> ''),
    observed_ms INTEGER NOT NULL,
    PRIMARY KEY (task, seen)) WITHOUT ROWID;

-- What a success of a task rests on; written before it.
CREATE TABLE evidence (
    task INTEGER NOT NULL REFERENCES task,
    contract_version INTEGER NOT NULL,
    number INTEGER NOT NULL,
    reference TEXT NOT NULL CHECK (length(reference) BETWEEN 1 AND 500),
    digest TEXT NOT NULL,
    PRIMARY KEY (task, contract_version, number)) WITHOUT ROWID;

-- How a task ended, once under each contract. Without a row under the newest one it is open.
CREATE TABLE task_end (
    task INTEGER NOT NULL REFERENCES task,
    contract_version INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('succeeded', 'failed')),
    check_reference TEXT,        -- NULL: it was given up
    check_digest TEXT,
    reason TEXT,                 -- NULL: it succeeded
    ended_by TEXT NOT NULL CHECK (ended_by <> ''),
    ended_ms INTEGER NOT NULL,
    PRIMARY KEY (task, contract_version),
    CHECK ((state = 'succeeded') = (coalesce(length(check_reference), 0) BETWEEN 1 AND 500)),
    CHECK ((check_digest IS NULL) = (check_reference IS NULL)),
    CHECK ((state = 'failed') = (coalesce(reason, '') <> ''))) WITHOUT ROWID;

-- What a verifier said of the mission that had this hash; the last word counts.
CREATE TABLE verification (
    mission INTEGER NOT NULL REFERENCES mission,
    number INTEGER NOT NULL,     -- the how-many-th
    verifier TEXT NOT NULL CHECK (verifier <> ''),
    passed INTEGER NOT NULL CHECK (passed IN (0, 1)),
    hash TEXT NOT NULL,
    revision INTEGER NOT NULL,   -- of the mission that was judged
    judged_ms INTEGER NOT NULL,
    PRIMARY KEY (mission, number)) WITHOUT ROWID;

-- Each task under the contract of today, and until when what was last seen of it, in this world, counts.
CREATE VIEW task_today AS
SELECT t.number, t.mission, t.mandatory, coalesce(e.state, 'open') AS state,
       s.observed_ms AS since_ms, s.observed_ms + t.limit_ms AS until_ms
FROM task t JOIN mission m ON m.number = t.mission
LEFT JOIN task_end e ON e.task = t.number AND e.contract_version = m.contract_version
LEFT JOIN sighting s ON s.task = t.number AND s.contract_version = m.contract_version AND s.world = m.world
     AND s.seen = (SELECT max(seen) FROM sighting WHERE task = t.number);

-- What the rules say, once more, for whoever writes past the library.

CREATE TRIGGER mission_begins_running BEFORE INSERT ON mission
WHEN NEW.state <> 'running' OR NEW.contract_version <> 1 OR NEW.world <> 1 OR NEW.revision <> 1
BEGIN SELECT RAISE(ABORT, 'mission: begins running, its counts at 1'); END;

CREATE TRIGGER mission_ends_once BEFORE UPDATE ON mission WHEN OLD.ended_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'mission: finished and failed are final'); END;

CREATE TRIGGER mission_counts_rise BEFORE UPDATE ON mission
WHEN NEW.revision <> OLD.revision + 1 OR NEW.world < OLD.world OR NEW.contract_version < OLD.contract_version
BEGIN SELECT RAISE(ABORT, 'mission: each change is the next revision, and nothing comes back'); END;

CREATE TRIGGER mission_has_its_contract BEFORE UPDATE ON mission
WHEN NEW.contract_version <> OLD.contract_version
 AND (NEW.state <> 'running' OR NOT EXISTS (
    SELECT 1 FROM contract WHERE mission = NEW.number AND version = NEW.contract_version))
BEGIN SELECT RAISE(ABORT, 'mission: another contract is written first, and work begins again'); END;

CREATE TRIGGER mission_finishes_when_verified BEFORE UPDATE ON mission
WHEN NEW.state = 'finished'
 AND (OLD.state <> 'verifying' OR NEW.world <> OLD.world
   OR EXISTS (SELECT 1 FROM store WHERE paused_why IS NOT NULL)
   OR 1 <> coalesce((SELECT passed AND revision = OLD.revision FROM verification WHERE mission = OLD.number
                     ORDER BY number DESC LIMIT 1), 0))
BEGIN SELECT RAISE(ABORT, 'mission: finishes under verification, with a PASS, in a live store'); END;

CREATE TRIGGER mission_finishes_on_what_was_seen BEFORE UPDATE ON mission
WHEN NEW.state = 'finished'
 AND EXISTS (SELECT 1 FROM task_today WHERE mission = OLD.number AND (mandatory = 1 OR state = 'succeeded')
             AND NOT coalesce(NEW.ended_ms BETWEEN since_ms AND until_ms, FALSE))
BEGIN SELECT RAISE(ABORT, 'mission: a task was not seen lately, in this world'); END;

CREATE TRIGGER mission_finishes_with_its_tasks BEFORE UPDATE ON mission
WHEN NEW.state = 'finished'
 AND EXISTS (SELECT 1 FROM task_today WHERE mission = OLD.number AND mandatory = 1 AND state <> 'succeeded')
BEGIN SELECT RAISE(ABORT, 'mission: a mandatory task did not succeed'); END;

CREATE TRIGGER mission_finishes_over_no_unknown BEFORE UPDATE ON mission
WHEN NEW.state = 'finished'
 AND EXISTS (SELECT 1 FROM task t JOIN task_operation b ON b.task = t.number JOIN operation o ON o.number = b.operation
             WHERE t.mission = OLD.number AND o.state <> 'prepared'
               AND EXISTS (SELECT 1 FROM legal_move WHERE source = o.state))
BEGIN SELECT RAISE(ABORT, 'mission: an effect of it is not known'); END;

CREATE TRIGGER contract_follows_the_last BEFORE INSERT ON contract
WHEN NEW.version <> 1 + coalesce((SELECT max(version) FROM contract WHERE mission = NEW.mission), 0)
  OR EXISTS (SELECT 1 FROM mission WHERE number = NEW.mission AND ended_ms IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'contract: the next version, of a mission that is not ended'); END;

CREATE TRIGGER contract_begins_the_work_again AFTER INSERT ON contract WHEN NEW.version > 1
BEGIN
    UPDATE mission
    SET contract_version = NEW.version, counts_from_ms = NEW.set_ms, revision = revision + 1, state = 'running'
    WHERE number = NEW.mission;
END;

CREATE TRIGGER task_begins_without_operations BEFORE INSERT ON task
WHEN EXISTS (SELECT 1 FROM operation WHERE work_id = NEW.work_id)
BEGIN SELECT RAISE(ABORT, 'task: operations of its work item stand already'); END;

CREATE TRIGGER operation_joins_its_task AFTER INSERT ON operation
WHEN EXISTS (SELECT 1 FROM task WHERE work_id = NEW.work_id)
BEGIN INSERT INTO task_operation SELECT NEW.number, number FROM task WHERE work_id = NEW.work_id; END;

CREATE TRIGGER compensation_joins_its_task AFTER INSERT ON compensation
WHEN EXISTS (SELECT 1 FROM task_operation WHERE operation = NEW.original)
BEGIN
    INSERT INTO task_operation SELECT NEW.operation, task FROM task_operation WHERE operation = NEW.original;
END;

CREATE TRIGGER sighting_is_of_this_world BEFORE INSERT ON sighting
WHEN NEW.seen <> 1 + coalesce((SELECT max(seen) FROM sighting WHERE task = NEW.task), 0)
  OR NOT EXISTS (SELECT 1 FROM task t JOIN mission m ON m.number = t.mission
                 WHERE t.number = NEW.task AND m.world = NEW.world
                   AND m.contract_version = NEW.contract_version AND m.ended_ms IS NULL
                   AND m.counts_from_ms <= NEW.observed_ms)
BEGIN SELECT RAISE(ABORT, 'sighting: the next one, of this world and contract'); END;

CREATE TRIGGER evidence_comes_before_its_end BEFORE INSERT ON evidence
WHEN EXISTS (SELECT 1 FROM task_end WHERE task = NEW.task AND contract_version = NEW.contract_version)
BEGIN SELECT RAISE(ABORT, 'evidence: what a success rests on is written before it'); END;

CREATE TRIGGER task_end_is_of_running_work BEFORE INSERT ON task_end
WHEN NOT EXISTS (SELECT 1 FROM task t JOIN mission m ON m.number = t.mission
                 WHERE t.number = NEW.task AND m.contract_version = NEW.contract_version AND m.state = 'running')
BEGIN SELECT RAISE(ABORT, 'task_end: under the contract of today, while work goes on'); END;

CREATE TRIGGER task_end_has_its_evidence BEFORE INSERT ON task_end
WHEN NEW.state = 'succeeded'
 AND NOT EXISTS (SELECT 1 FROM evidence WHERE task = NEW.task AND contract_version = NEW.contract_version)
BEGIN SELECT RAISE(ABORT, 'task_end: no success without evidence'); END;

CREATE TRIGGER verification_is_of_its_mission BEFORE INSERT ON verification
WHEN NEW.number <> 1 + coalesce((SELECT max(number) FROM verification WHERE mission = NEW.mission), 0)
  OR NOT EXISTS (SELECT 1 FROM mission WHERE number = NEW.mission AND state = 'verifying'
                 AND revision = NEW.revision)
BEGIN SELECT RAISE(ABORT, 'verification: the next word, while the mission is under verification'); END;

CREATE TRIGGER decision_announces_what_its_mission_saw BEFORE INSERT ON decision
WHEN NEW.cause = 'announced'
 AND EXISTS (SELECT 1 FROM task_operation b JOIN operation o ON o.number = b.operation
             JOIN task_today t ON t.number = b.task JOIN mission m ON m.number = t.mission
             WHERE b.operation = NEW.operation AND o.compensates IS NULL
               AND (m.state <> 'running' OR t.state <> 'open'
                 OR NOT coalesce(NEW.decided_ms BETWEEN t.since_ms AND t.until_ms, FALSE)
                 OR NOT EXISTS (SELECT 1 FROM command c WHERE c.operation = NEW.operation
                                AND c.contract_version = m.contract_version)))
BEGIN SELECT RAISE(ABORT, 'decision: commanded today, of an open task that was seen lately'); END;

-- Whatever leaves may change the world, and whatever becomes known of it may be another world than was seen.

CREATE TRIGGER attempt_changes_the_world AFTER INSERT ON attempt
WHEN EXISTS (SELECT 1 FROM task_operation WHERE operation = NEW.operation)
BEGIN
    UPDATE mission SET world = world + 1, counts_from_ms = NEW.announced_ms, revision = revision + 1
    WHERE ended_ms IS NULL AND number = (SELECT t.mission FROM task_operation b JOIN task t ON t.number = b.task
                                         WHERE b.operation = NEW.operation);
END;

CREATE TRIGGER operation_changes_the_world AFTER UPDATE OF version ON operation
WHEN OLD.state <> 'prepared' AND EXISTS (SELECT 1 FROM task_operation WHERE operation = NEW.number)
BEGIN
    UPDATE mission SET world = world + 1, revision = revision + 1, counts_from_ms = coalesce(
        (SELECT decided_ms FROM decision WHERE operation = NEW.number AND version = NEW.version),
        (SELECT noticed_ms FROM incident WHERE operation = NEW.number AND version = NEW.version), counts_from_ms)
    WHERE ended_ms IS NULL AND number = (SELECT t.mission FROM task_operation b JOIN task t ON t.number = b.task
                                         WHERE b.operation = NEW.number);
END;

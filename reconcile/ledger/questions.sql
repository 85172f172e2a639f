-- Open questions: what nobody knows yet, who may work on it now, and when a person is called.

-- What one worker can ask about: one scope at one life of one receiver. Workers of two lanes never meet.
CREATE TABLE lane (
    number INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,         -- tenant, project, environment, as a JSON list
    target TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    UNIQUE (scope, target, epoch));

-- The open question. A proof that nothing was sent ends one; the next announcement begins another generation.
CREATE TABLE obligation (
    operation INTEGER NOT NULL REFERENCES operation,
    generation INTEGER NOT NULL,
    lane INTEGER NOT NULL REFERENCES lane,
    attempt INTEGER NOT NULL,    -- the sending that it began with
    opened_ms INTEGER NOT NULL,
    deadline_ms INTEGER,         -- when a person is called; NULL: the policy names no deadline
    due_ms INTEGER NOT NULL,     -- when it may next be worked on: the one order of the queue
    visits INTEGER NOT NULL DEFAULT 0,      -- how often somebody looked, in all
    fruitless INTEGER NOT NULL DEFAULT 0,   -- and how often in vain since the last repair
    found TEXT,                  -- what the last visit came to; NULL: nobody looked yet
    repairs INTEGER NOT NULL DEFAULT 0,     -- how often a person handed it back; each fences what was claimed before
    ended_ms INTEGER,            -- NULL: the question is open
    PRIMARY KEY (operation, generation)) WITHOUT ROWID;
CREATE INDEX obligation_due ON obligation (lane, due_ms, operation) WHERE ended_ms IS NULL;

-- A person was called about an open question. What came of that is written once.
CREATE TABLE escalation (
    operation INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    called INTEGER NOT NULL,     -- the how-many-th call
    why TEXT NOT NULL CHECK (why <> ''),
    called_ms INTEGER NOT NULL,
    repaired_by TEXT,            -- NULL: nobody handed the question back
    reason TEXT,
    repaired_ms INTEGER,
    PRIMARY KEY (operation, generation, called),
    FOREIGN KEY (operation, generation) REFERENCES obligation,
    CHECK ((repaired_by IS NULL) = (repaired_ms IS NULL)),
    CHECK ((reason IS NULL) = (repaired_ms IS NULL))) WITHOUT ROWID;

-- Who may work on an item: one row for each item, so that a backlog does not grow with its visits. Each
-- claim is the next generation, with a fresh token; what an older one holds is stale.
CREATE TABLE claim (
    what TEXT NOT NULL CHECK (what IN ('work', 'obligation', 'task')),
    item TEXT NOT NULL,
    generation INTEGER NOT NULL,
    token TEXT NOT NULL,
    incarnation INTEGER NOT NULL,  -- of the store that gave it
    owner TEXT NOT NULL CHECK (owner <> ''),
    claimed_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (what, item)) WITHOUT ROWID;

-- What the rules say, once more, for whoever writes past the library.

CREATE TRIGGER obligation_is_the_only_open_one BEFORE INSERT ON obligation
WHEN EXISTS (SELECT 1 FROM obligation WHERE operation = NEW.operation AND ended_ms IS NULL)
BEGIN SELECT RAISE(ABORT, 'obligation: the question is open already'); END;

CREATE TRIGGER obligation_begins_with_unknown BEFORE INSERT ON obligation
WHEN NEW.ended_ms IS NOT NULL
  OR NOT EXISTS (SELECT 1 FROM operation WHERE number = NEW.operation AND state = 'unknown')
BEGIN SELECT RAISE(ABORT, 'obligation: opened by an announcement alone'); END;

CREATE TRIGGER obligation_ends_once BEFORE UPDATE ON obligation WHEN OLD.ended_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'obligation: an ended question stays ended'); END;

CREATE TRIGGER obligation_ends_with_its_question BEFORE UPDATE OF ended_ms ON obligation
WHEN NEW.ended_ms IS NOT NULL
 AND EXISTS (SELECT 1 FROM operation o JOIN legal_move m ON m.source = o.state
             WHERE o.number = NEW.operation AND o.state <> 'prepared')
BEGIN SELECT RAISE(ABORT, 'obligation: the question is not answered'); END;

CREATE TRIGGER obligation_counts_only_rise BEFORE UPDATE ON obligation
WHEN NEW.visits < OLD.visits OR NEW.repairs < OLD.repairs
  OR (NEW.fruitless < OLD.fruitless AND NEW.repairs = OLD.repairs)
BEGIN SELECT RAISE(ABORT, 'obligation: its counts only rise, and a repair alone begins anew'); END;

CREATE TRIGGER escalation_calls_once BEFORE INSERT ON escalation
WHEN NEW.repaired_ms IS NOT NULL
  OR NOT EXISTS (SELECT 1 FROM obligation WHERE operation = NEW.operation AND generation = NEW.generation
                 AND ended_ms IS NULL)
  OR EXISTS (SELECT 1 FROM escalation WHERE operation = NEW.operation AND generation = NEW.generation
             AND repaired_ms IS NULL)
BEGIN SELECT RAISE(ABORT, 'escalation: a person is called once about an open question'); END;

CREATE TRIGGER escalation_is_answered_once BEFORE UPDATE ON escalation WHEN OLD.repaired_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'escalation: what was answered stays answered'); END;

CREATE TRIGGER claim_generations_only_rise BEFORE UPDATE ON claim
WHEN NEW.generation < OLD.generation
  OR (NEW.generation = OLD.generation
      AND (NEW.token <> OLD.token OR NEW.incarnation <> OLD.incarnation OR NEW.owner <> OLD.owner))
  OR (NEW.generation > OLD.generation AND NEW.token = OLD.token)
BEGIN SELECT RAISE(ABORT, 'claim: another holder is another generation, with another token'); END;

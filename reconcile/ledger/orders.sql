-- What buys: work and who may do it, prices, authority, money, delivery. Amounts are whole minor units.
--
-- An order is an operation that has a row in `purchase`. Its state stands in `operation` alone; what is
-- here says what it costs and by whose authority it leaves.

-- What each final state does to held money, copied from rules/money.py. A state not named here holds it.
CREATE TABLE money_move (state TEXT PRIMARY KEY NOT NULL, does TEXT NOT NULL) WITHOUT ROWID;

-- Something to be done, whatever the number of workers that try.
CREATE TABLE work (
    work_id TEXT PRIMARY KEY NOT NULL,
    enqueued_ms INTEGER NOT NULL,
    cancelled_by TEXT,           -- NULL: nobody cancelled it
    reason TEXT,
    cancelled_ms INTEGER,
    CHECK ((cancelled_by IS NULL) = (cancelled_ms IS NULL)),
    CHECK ((reason IS NULL) = (cancelled_ms IS NULL))) WITHOUT ROWID;

-- Who may work on an item. Each claim is a row, its token fresh; the newest generation counts.
CREATE TABLE claim (
    what TEXT NOT NULL CHECK (what IN ('work', 'task')),
    item TEXT NOT NULL,
    generation INTEGER NOT NULL,
    token TEXT NOT NULL UNIQUE,
    incarnation INTEGER NOT NULL,  -- of the store that gave it
    owner TEXT NOT NULL CHECK (owner <> ''),
    claimed_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    PRIMARY KEY (what, item, generation)) WITHOUT ROWID;

-- What a unit costs at a supplier; the newest version counts. A caller names no price.
CREATE TABLE price (
    sku TEXT NOT NULL,
    supplier TEXT NOT NULL,
    version INTEGER NOT NULL,
    unit_cost INTEGER NOT NULL CHECK (typeof(unit_cost) = 'integer' AND unit_cost > 0),
    currency TEXT NOT NULL,
    set_by TEXT NOT NULL CHECK (set_by <> ''),
    set_ms INTEGER NOT NULL,
    PRIMARY KEY (sku, supplier, version)) WITHOUT ROWID;

-- What may be spent, and how much without a person; the newest version counts.
CREATE TABLE budget (
    currency TEXT NOT NULL,
    version INTEGER NOT NULL,
    ceiling INTEGER NOT NULL CHECK (typeof(ceiling) = 'integer' AND ceiling >= 0),
    automatic INTEGER NOT NULL CHECK (typeof(automatic) = 'integer' AND automatic >= 0),
    set_by TEXT NOT NULL CHECK (set_by <> ''),
    set_ms INTEGER NOT NULL,
    PRIMARY KEY (currency, version)) WITHOUT ROWID;

-- Who may approve, today.
CREATE TABLE approver (
    name TEXT PRIMARY KEY NOT NULL CHECK (name <> ''),
    listed INTEGER NOT NULL CHECK (listed IN (0, 1)),
    changed_ms INTEGER NOT NULL) WITHOUT ROWID;

-- What an operation buys, at the price of the store when it was proposed.
CREATE TABLE purchase (
    operation INTEGER PRIMARY KEY REFERENCES operation,
    sku TEXT NOT NULL,
    quantity INTEGER NOT NULL CHECK (typeof(quantity) = 'integer' AND quantity > 0),
    unit_cost INTEGER NOT NULL CHECK (typeof(unit_cost) = 'integer' AND unit_cost > 0),
    currency TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (typeof(amount) = 'integer' AND amount = quantity * unit_cost));

CREATE INDEX operation_draft ON operation (work_id) WHERE state = 'prepared';

-- One grant of authority for one exact proposal; the newest counts. Live while now < expires_ms.
CREATE TABLE approval (
    operation INTEGER NOT NULL REFERENCES purchase,
    ordinal INTEGER NOT NULL,
    digest TEXT NOT NULL,
    basis TEXT NOT NULL CHECK (basis IN ('operator', 'automatic', 'unknown')),
    actor TEXT NOT NULL CHECK (actor <> ''),
    approved_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL CHECK (expires_ms > approved_ms AND expires_ms - approved_ms <= 86400000),
    revoked_by TEXT,             -- NULL: it was not revoked
    reason TEXT,
    revoked_ms INTEGER,
    PRIMARY KEY (operation, ordinal),
    CHECK ((revoked_by IS NULL) = (revoked_ms IS NULL)),
    CHECK ((reason IS NULL) = (revoked_ms IS NULL))) WITHOUT ROWID;

-- The journal of held money. The newest row of a currency says how it stands; rows are only added.
-- A reservation is entered with the first approval; its one settlement is entered by the file itself,
-- in the statement that moves the operation.
CREATE TABLE entry (
    currency TEXT NOT NULL,
    number INTEGER NOT NULL,     -- the how-many-th of this currency
    operation INTEGER NOT NULL REFERENCES purchase,
    settles INTEGER NOT NULL CHECK (settles = (does <> 'reserve')),
    does TEXT NOT NULL CHECK (does IN ('reserve', 'spend', 'release', 'write_off')),
    amount INTEGER NOT NULL CHECK (amount > 0),
    reserved INTEGER NOT NULL CHECK (reserved >= 0),
    spent INTEGER NOT NULL CHECK (spent >= 0),
    written_off INTEGER NOT NULL CHECK (written_off >= 0),
    entered_ms INTEGER NOT NULL,
    PRIMARY KEY (currency, number),
    UNIQUE (operation, settles)) WITHOUT ROWID;

-- What was on the shelf when it was counted. On hand is that, and all that was delivered since.
CREATE TABLE stock (
    sku TEXT PRIMARY KEY NOT NULL,
    counted INTEGER NOT NULL CHECK (typeof(counted) = 'integer' AND counted >= 0),
    counted_ms INTEGER NOT NULL) WITHOUT ROWID;

-- Goods that arrived, once for each reference. Accepted is not delivered.
CREATE TABLE delivery (
    reference TEXT PRIMARY KEY NOT NULL,
    operation INTEGER NOT NULL REFERENCES purchase,
    quantity INTEGER NOT NULL CHECK (typeof(quantity) = 'integer' AND quantity > 0),
    recorded_by TEXT NOT NULL CHECK (recorded_by <> ''),
    delivered_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX delivery_operation ON delivery (operation);

-- What the rules say, once more, for whoever writes past the library.

CREATE TRIGGER work_is_cancelled_once BEFORE UPDATE ON work WHEN OLD.cancelled_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'work: a cancelled item stays cancelled'); END;

CREATE TRIGGER purchase_is_of_a_draft BEFORE INSERT ON purchase
WHEN NOT EXISTS (SELECT 1 FROM operation o WHERE o.number = NEW.operation
                 AND o.version = 1 AND o.subject = NEW.sku)
BEGIN SELECT RAISE(ABORT, 'purchase: an order is one from the beginning'); END;

CREATE TRIGGER approval_names_its_digest BEFORE INSERT ON approval
WHEN NEW.revoked_ms IS NOT NULL
  OR NOT EXISTS (SELECT 1 FROM operation o JOIN purchase p ON p.operation = o.number
                 WHERE o.number = NEW.operation AND o.digest = NEW.digest
                   AND o.state IN ('prepared', 'unknown'))
  OR (NEW.basis = 'operator'
      AND NOT EXISTS (SELECT 1 FROM approver WHERE name = NEW.actor AND listed = 1))
BEGIN SELECT RAISE(ABORT, 'approval: by a listed actor, for this exact proposal, while it is open'); END;

CREATE TRIGGER approval_is_revoked_once BEFORE UPDATE ON approval WHEN OLD.revoked_ms IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'approval: what was revoked stays revoked'); END;

CREATE TRIGGER decision_announces_what_is_admitted BEFORE INSERT ON decision
WHEN NEW.cause = 'announced' AND EXISTS (SELECT 1 FROM purchase WHERE operation = NEW.operation)
 AND NOT EXISTS (
    SELECT 1 FROM operation o JOIN work w ON w.work_id = o.work_id JOIN approval a ON a.operation = o.number
    WHERE o.number = NEW.operation AND w.cancelled_ms IS NULL
      AND a.ordinal = (SELECT max(ordinal) FROM approval WHERE operation = o.number)
      AND a.revoked_ms IS NULL AND a.basis <> 'unknown' AND NEW.decided_ms < a.expires_ms
      AND EXISTS (SELECT 1 FROM entry e WHERE e.operation = o.number AND e.settles = 0))
BEGIN SELECT RAISE(ABORT, 'decision: no live approval with held money admits this order'); END;

CREATE TRIGGER entry_follows_the_last BEFORE INSERT ON entry
WHEN NEW.number <> 1 + coalesce((SELECT max(number) FROM entry WHERE currency = NEW.currency), 0)
BEGIN SELECT RAISE(ABORT, 'entry: the journal is continued at its end'); END;

CREATE TRIGGER entry_is_of_its_order BEFORE INSERT ON entry
WHEN NOT EXISTS (SELECT 1 FROM purchase p WHERE p.operation = NEW.operation
                 AND p.currency = NEW.currency AND p.amount = NEW.amount)
BEGIN SELECT RAISE(ABORT, 'entry: the amount is that of the order'); END;

CREATE TRIGGER entry_adds_up BEFORE INSERT ON entry
WHEN EXISTS (
    SELECT 1 FROM (SELECT max(number), reserved, spent, written_off FROM entry WHERE currency = NEW.currency) l
    WHERE NEW.reserved <> coalesce(l.reserved, 0) + CASE NEW.does WHEN 'reserve' THEN NEW.amount ELSE -NEW.amount END
       OR NEW.spent <> coalesce(l.spent, 0) + CASE NEW.does WHEN 'spend' THEN NEW.amount ELSE 0 END
       OR NEW.written_off <> coalesce(l.written_off, 0) + CASE NEW.does WHEN 'write_off' THEN NEW.amount ELSE 0 END)
BEGIN SELECT RAISE(ABORT, 'entry: the sums do not follow from the last entry'); END;

CREATE TRIGGER entry_reserves_within_the_ceiling BEFORE INSERT ON entry
WHEN NEW.does = 'reserve'
 AND (NOT EXISTS (SELECT 1 FROM operation WHERE number = NEW.operation AND state = 'prepared')
   OR NEW.reserved + NEW.spent + NEW.written_off > coalesce((
        SELECT ceiling FROM budget WHERE currency = NEW.currency ORDER BY version DESC LIMIT 1), -1))
BEGIN SELECT RAISE(ABORT, 'entry: only a draft reserves, within the ceiling'); END;

CREATE TRIGGER entry_settles_as_the_state_says BEFORE INSERT ON entry
WHEN NEW.does <> 'reserve'
 AND NOT EXISTS (SELECT 1 FROM operation o JOIN money_move m ON m.state = o.state AND m.does = NEW.does
                 WHERE o.number = NEW.operation
                   AND EXISTS (SELECT 1 FROM entry e WHERE e.operation = o.number AND e.settles = 0))
BEGIN SELECT RAISE(ABORT, 'entry: money moves with the state, and only what is held'); END;

CREATE TRIGGER operation_moves_its_money AFTER UPDATE OF state ON operation
WHEN EXISTS (SELECT 1 FROM money_move WHERE state = NEW.state)
 AND EXISTS (SELECT 1 FROM entry WHERE operation = NEW.number AND settles = 0)
BEGIN
    INSERT INTO entry
    SELECT r.currency, l.number + 1, NEW.number, 1, m.does, r.amount, l.reserved - r.amount,
           l.spent + CASE m.does WHEN 'spend' THEN r.amount ELSE 0 END,
           l.written_off + CASE m.does WHEN 'write_off' THEN r.amount ELSE 0 END,
           (SELECT decided_ms FROM decision WHERE operation = NEW.number AND version = NEW.version)
    FROM entry r JOIN money_move m ON m.state = NEW.state
    JOIN entry l ON l.currency = r.currency
         AND l.number = (SELECT max(number) FROM entry WHERE currency = r.currency)
    WHERE r.operation = NEW.number AND r.settles = 0;
END;

CREATE TRIGGER delivery_is_of_what_was_ordered BEFORE INSERT ON delivery
WHEN NOT EXISTS (SELECT 1 FROM operation o JOIN purchase p ON p.operation = o.number
                 WHERE o.number = NEW.operation
                   AND o.state NOT IN ('prepared', 'rejected', 'not_applied', 'revoked'))
  OR NEW.quantity + (SELECT coalesce(sum(quantity), 0) FROM delivery WHERE operation = NEW.operation)
     > (SELECT quantity FROM purchase WHERE operation = NEW.operation)
BEGIN SELECT RAISE(ABORT, 'delivery: of an order that may have happened, and no more than that'); END;

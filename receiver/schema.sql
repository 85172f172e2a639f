-- The receiver's file: what happened here. Every row is kept as it is; nothing is ever purged by age.

-- Who this receiver is. The epoch is 1 at birth; a file that begins a new life counts one more.
CREATE TABLE self (
    number INTEGER PRIMARY KEY CHECK (number = 1),
    identity TEXT NOT NULL, epoch INTEGER NOT NULL);

-- A committed effect. No key makes an operation unique: this receiver is truly not idempotent.
CREATE TABLE effect (
    operation_id TEXT NOT NULL,
    number INTEGER NOT NULL,             -- the how-many-th effect of this operation
    kind TEXT NOT NULL, payload TEXT NOT NULL,
    compensates TEXT,                    -- NULL: an original; otherwise the effect id that it amends
    made_ms INTEGER NOT NULL,            -- when it committed, by this receiver's clock
    PRIMARY KEY (operation_id, number)) WITHOUT ROWID;

-- Closed operations. A mark outlives every late original.
CREATE TABLE closed (operation_id TEXT PRIMARY KEY NOT NULL) WITHOUT ROWID;

-- Stored rejections. A declined operation is closed too, so its late originals are refused.
CREATE TABLE declined (
    operation_id TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL, payload TEXT NOT NULL,
    compensates TEXT) WITHOUT ROWID;     -- NULL: an original was declined

-- Everything that was asked for, written before it is done. A plain read leaves no trace.
CREATE TABLE contact (
    number INTEGER PRIMARY KEY,
    request TEXT NOT NULL CHECK (request IN ('apply', 'close', 'lookup', 'list')),
    operation_id TEXT,                   -- NULL: the whole account was asked about
    body TEXT,                           -- the body of the request as it came; NULL: it had none
    CHECK ((operation_id IS NULL) = (request = 'list')));

CREATE TRIGGER effect_not_after_close BEFORE INSERT ON effect
WHEN EXISTS (SELECT 1 FROM closed WHERE operation_id = NEW.operation_id)
BEGIN SELECT RAISE(ABORT, 'effect: the operation is closed'); END;

CREATE TRIGGER effect_is_not_replaced BEFORE INSERT ON effect
WHEN EXISTS (SELECT 1 FROM effect WHERE operation_id = NEW.operation_id AND number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'effect: a row is kept as it is'); END;
CREATE TRIGGER effect_is_not_changed BEFORE UPDATE ON effect
BEGIN SELECT RAISE(ABORT, 'effect: a row is kept as it is'); END;
CREATE TRIGGER effect_is_not_removed BEFORE DELETE ON effect
BEGIN SELECT RAISE(ABORT, 'effect: a row is kept as it is'); END;

CREATE TRIGGER closed_is_not_replaced BEFORE INSERT ON closed
WHEN EXISTS (SELECT 1 FROM closed WHERE operation_id = NEW.operation_id)
BEGIN SELECT RAISE(ABORT, 'closed: a row is kept as it is'); END;
CREATE TRIGGER closed_is_not_changed BEFORE UPDATE ON closed
BEGIN SELECT RAISE(ABORT, 'closed: a row is kept as it is'); END;
CREATE TRIGGER closed_is_not_removed BEFORE DELETE ON closed
BEGIN SELECT RAISE(ABORT, 'closed: a row is kept as it is'); END;

CREATE TRIGGER declined_has_no_effect BEFORE INSERT ON declined
WHEN EXISTS (SELECT 1 FROM effect WHERE operation_id = NEW.operation_id)
BEGIN SELECT RAISE(ABORT, 'declined: the operation has an effect'); END;

CREATE TRIGGER declined_is_not_replaced BEFORE INSERT ON declined
WHEN EXISTS (SELECT 1 FROM declined WHERE operation_id = NEW.operation_id)
BEGIN SELECT RAISE(ABORT, 'declined: a row is kept as it is'); END;
CREATE TRIGGER declined_is_not_changed BEFORE UPDATE ON declined
BEGIN SELECT RAISE(ABORT, 'declined: a row is kept as it is'); END;
CREATE TRIGGER declined_is_not_removed BEFORE DELETE ON declined
BEGIN SELECT RAISE(ABORT, 'declined: a row is kept as it is'); END;

CREATE TRIGGER contact_is_not_replaced BEFORE INSERT ON contact
WHEN EXISTS (SELECT 1 FROM contact WHERE number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'contact: a row is kept as it is'); END;
CREATE TRIGGER contact_is_not_changed BEFORE UPDATE ON contact
BEGIN SELECT RAISE(ABORT, 'contact: a row is kept as it is'); END;
CREATE TRIGGER contact_is_not_removed BEFORE DELETE ON contact
BEGIN SELECT RAISE(ABORT, 'contact: a row is kept as it is'); END;

CREATE TRIGGER self_is_not_replaced BEFORE INSERT ON self WHEN EXISTS (SELECT 1 FROM self)
BEGIN SELECT RAISE(ABORT, 'self: a row is kept as it is'); END;
CREATE TRIGGER self_is_not_changed BEFORE UPDATE ON self
BEGIN SELECT RAISE(ABORT, 'self: a row is kept as it is'); END;
CREATE TRIGGER self_is_not_removed BEFORE DELETE ON self
BEGIN SELECT RAISE(ABORT, 'self: a row is kept as it is'); END;

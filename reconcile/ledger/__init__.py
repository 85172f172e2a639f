"""What is durable: the sender's one SQLite file. No SQL stands outside this room."""

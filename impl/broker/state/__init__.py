"""The tables that a broker keeps: topics, groups, offsets, clients, queue locks and statistics."""

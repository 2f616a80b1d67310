-- Settlements with all that they bring: each takes effect whose lease still stands. Answers which did, by their position.
-- _notes_before: as many notes were kept by this transaction before. _link_of: the position of the settlement that brought
-- a link. Keys of links are marked before anything is locked, and links are admitted when it is known what stood.
CREATE FUNCTION settle(
    _now bigint, _settled settlements, _reports exit_reports, _byproducts byproducts, _notes_before int, _link_of int[],
    _links new_tasks
) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _link_run int[];
    _link_sites int[];
    _fresh boolean[];
    _locked record;
    _stood bigint[];
BEGIN
    IF cardinality(_link_of) > 0 THEN
        -- Null where the lease of its settlement does not stand, or the run was cancelled.
        SELECT array_agg(t.run ORDER BY u.nth) INTO _link_run
        FROM unnest(_link_of) WITH ORDINALITY AS u (settlement, nth)
        LEFT JOIN LATERAL (
            SELECT t.run FROM task AS t CROSS JOIN run AS r
            WHERE t.id = _settled.task[u.settlement] AND t.token = _settled.token[u.settlement]
              AND r.id = t.run AND r.run_id = _settled.run_id[u.settlement] AND r.state <> 'cancelled'
            OFFSET 0) AS t ON true;
        _fresh := mark_seen(_link_run, _links.key);
        _link_sites := ensure_lines_and_sites(_link_run, _links.site, _links.lane, _fresh);
    END IF;
    SELECT * INTO _locked FROM lock_settled_sites(_settled.task, _settled.token, _link_run, _link_sites);
    IF _locked.singly AND 0 = ALL (_settled.kind) AND cardinality(_settled.crawl_delay) + cardinality(_settled.pace) = 0 THEN
        _stood := settle_only_done(_now, _settled);
    ELSE
        _stood := settle_any_outcome(_now, _settled);
    END IF;
    IF cardinality(_stood) < cardinality(_settled.task) THEN
        PERFORM count_late(_settled.run_id, _stood);
    END IF;
    IF cardinality(_byproducts.note_of) + cardinality(_byproducts.entry_of) + cardinality(_byproducts.saved_of) > 0 THEN
        PERFORM store_byproducts(_now, _settled.run_id, _stood, _notes_before, _byproducts);
    END IF;
    IF _fresh IS NOT NULL THEN
        PERFORM admit_links(_now, _stood, _link_of, _link_run, _link_sites, _links, _fresh, _locked.tighten);
    END IF;
    IF cardinality(_reports.settlement) > 0 THEN
        PERFORM update_exit_health(_now, _stood, _reports);
    END IF;
    RETURN _stood;
END
$$;

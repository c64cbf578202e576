-- What the extension pgquad consists of in this database: a line for each object, with its definition, comment and
-- rights. Two ways to install a version are alike when their descriptions are.
SET enable_nestloop = off;
WITH extension AS (
    SELECT * FROM pg_catalog.pg_extension WHERE extname = 'pgquad'
), member AS MATERIALIZED (
    SELECT d.classid, d.objid, i.type, i.identity
    FROM extension e
    JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    CROSS JOIN LATERAL pg_catalog.pg_identify_object(d.classid, d.objid, 0) i
), rights AS MATERIALIZED (
    -- Rights as rows, the defaults written out, so that no rights given and the defaults given are the same.
    SELECT a.classid, a.objid,
           string_agg(format('%s to %s%s', x.privilege_type, CASE x.grantee WHEN 0 THEN 'public' ELSE x.grantee::regrole::text END,
                             CASE WHEN x.is_grantable THEN ' with grant' END),
                      ', ' ORDER BY x.privilege_type, x.grantee) AS rights
    FROM (
        SELECT 'pg_catalog.pg_proc'::regclass::oid AS classid, oid AS objid, coalesce(proacl, acldefault('f', proowner)) AS acl
        FROM pg_catalog.pg_proc
        UNION ALL
        SELECT 'pg_catalog.pg_class'::regclass, oid,
               coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", relowner))
        FROM pg_catalog.pg_class
        UNION ALL
        SELECT 'pg_catalog.pg_type'::regclass, oid, coalesce(typacl, acldefault('T', typowner)) FROM pg_catalog.pg_type
        UNION ALL
        SELECT 'pg_catalog.pg_namespace'::regclass, oid, coalesce(nspacl, acldefault('n', nspowner)) FROM pg_catalog.pg_namespace
    ) a
    CROSS JOIN LATERAL aclexplode(a.acl) x
    GROUP BY a.classid, a.objid
), definition AS MATERIALIZED (
    SELECT 'pg_catalog.pg_proc'::regclass::oid AS classid, p.oid AS objid,
           CASE WHEN p.prokind <> 'a' THEN pg_catalog.pg_get_functiondef(p.oid) || ' leakproof ' || p.proleakproof
           ELSE (SELECT concat_ws(' ', pg_get_function_arguments(p.oid), p.prorettype::regtype, p.provolatile, p.proparallel, p.proisstrict,
                                  to_jsonb(a) - 'aggfnoid' - 'aggsortop' - 'aggtranstype' - 'aggmtranstype',
                                  a.aggsortop::regoperator, a.aggtranstype::regtype, a.aggmtranstype::regtype)
                 FROM pg_catalog.pg_aggregate a WHERE a.aggfnoid = p.oid) END AS definition
    FROM pg_catalog.pg_proc p
    UNION ALL
    SELECT 'pg_catalog.pg_operator'::regclass, o.oid,
           concat_ws(' ', o.oprresult::regtype, o.oprcode, 'commutator', o.oprcom::regoperator, 'negator', o.oprnegate::regoperator,
                     'restrict', o.oprrest, 'join', o.oprjoin, 'hashes', o.oprcanhash, 'merges', o.oprcanmerge)
    FROM pg_catalog.pg_operator o
    UNION ALL
    SELECT 'pg_catalog.pg_cast'::regclass, c.oid, concat_ws(' ', c.castfunc::regprocedure, c.castcontext, c.castmethod)
    FROM pg_catalog.pg_cast c
    UNION ALL
    SELECT 'pg_catalog.pg_type'::regclass, t.oid,
           concat_ws(' ', t.typtype, t.typcategory, t.typispreferred, t.typlen, t.typbyval, t.typalign, t.typstorage, t.typdelim, t.typinput,
                     t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout, t.typanalyze, t.typsubscript, t.typbasetype::regtype,
                     t.typnotnull, t.typdefault, t.typcollation)
    FROM pg_catalog.pg_type t
    UNION ALL
    SELECT 'pg_catalog.pg_opfamily'::regclass, f.oid,
           (SELECT string_agg(format('operator %s %s %s order by %s', o.amopstrategy, o.amopopr::regoperator, o.amoppurpose,
                                     o.amopsortfamily), '; ' ORDER BY o.amopstrategy, o.amopopr::regoperator::text)
            FROM pg_catalog.pg_amop o WHERE o.amopfamily = f.oid) ||
           (SELECT string_agg(format('; function %s (%s, %s) %s', s.amprocnum, s.amproclefttype::regtype, s.amprocrighttype::regtype,
                                     s.amproc::regprocedure), '' ORDER BY s.amprocnum, s.amproc::regprocedure::text)
            FROM pg_catalog.pg_amproc s WHERE s.amprocfamily = f.oid)
    FROM pg_catalog.pg_opfamily f
    UNION ALL
    SELECT 'pg_catalog.pg_opclass'::regclass, c.oid,
           concat_ws(' ', f.opfnamespace::regnamespace, f.opfname, c.opcintype::regtype, 'default', c.opcdefault, c.opckeytype::regtype)
    FROM pg_catalog.pg_opclass c JOIN pg_catalog.pg_opfamily f ON f.oid = c.opcfamily
    UNION ALL
    SELECT 'pg_catalog.pg_am'::regclass, a.oid, concat_ws(' ', a.amtype, a.amhandler) FROM pg_catalog.pg_am a
    UNION ALL
    SELECT 'pg_catalog.pg_namespace'::regclass, n.oid, '' FROM pg_catalog.pg_namespace n
    UNION ALL
    SELECT 'pg_catalog.pg_event_trigger'::regclass, t.oid, concat_ws(' ', t.evtevent, t.evtfoid::regprocedure, t.evtenabled, t.evttags)
    FROM pg_catalog.pg_event_trigger t
    UNION ALL
    SELECT 'pg_catalog.pg_class'::regclass, c.oid,
           concat_ws(' ', c.relkind, c.relpersistence, a.amname, c.reloptions, 'row security', c.relrowsecurity, c.relforcerowsecurity,
               'configuration', (SELECT format('%s %s', true, e.extcondition[array_position(e.extconfig, c.oid)])
                                 FROM extension e WHERE c.oid = ANY (e.extconfig)),
               'columns', (SELECT string_agg(concat_ws(' ', t.attname, format_type(t.atttypid, t.atttypmod), 'not null', t.attnotnull,
                                                       t.attstorage, t.attcompression, t.attidentity, t.attgenerated, t.attstattarget,
                                                       t.attcollation::regcollation,
                                                       -- Some servers keep marks of their own there.
                                                       ARRAY(SELECT o FROM unnest(t.attoptions) o WHERE o NOT LIKE 'pg\_%'),
                                                       t.attacl, pg_get_expr(d.adbin, d.adrelid),
                                                       col_description(c.oid, t.attnum)), ', ' ORDER BY t.attnum)
                           FROM pg_catalog.pg_attribute t
                           LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = t.attrelid AND d.adnum = t.attnum
                           WHERE t.attrelid = c.oid AND t.attnum > 0 AND NOT t.attisdropped),
               (SELECT string_agg(format('constraint %s %s', o.conname, pg_get_constraintdef(o.oid)), ', ' ORDER BY o.conname)
                FROM pg_catalog.pg_constraint o WHERE o.conrelid = c.oid),
               (SELECT string_agg(pg_get_indexdef(i.indexrelid), ', ' ORDER BY i.indexrelid::regclass::text)
                FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid),
               (SELECT string_agg(format('%s enabled %s', pg_get_triggerdef(t.oid), t.tgenabled), ', ' ORDER BY t.tgname)
                FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),
               (SELECT string_agg(pg_get_ruledef(r.oid), ', ' ORDER BY r.rulename)
                FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid),
               (SELECT string_agg(concat_ws(' ', 'policy', p.polname, p.polcmd, p.polpermissive, pg_get_expr(p.polqual, p.polrelid),
                                            pg_get_expr(p.polwithcheck, p.polrelid)), ', ' ORDER BY p.polname)
                FROM pg_catalog.pg_policy p WHERE p.polrelid = c.oid),
               (SELECT to_jsonb(s) - 'seqrelid' - 'seqtypid' || jsonb_build_object('type', s.seqtypid::regtype)
                FROM pg_catalog.pg_sequence s WHERE s.seqrelid = c.oid))
    FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_am a ON a.oid = c.relam
)
SELECT line FROM (
    SELECT concat_ws(' | ', m.type, m.identity, 'comment ' || obj_description(m.objid, m.classid::regclass::name), r.rights,
                     coalesce(regexp_replace(d.definition, '\s+', ' ', 'g'), 'not described: add its catalog to test/upgrade/describe.sql'))
           AS line
    FROM member m
    LEFT JOIN rights r USING (classid, objid)
    LEFT JOIN definition d USING (classid, objid)
    UNION ALL
    SELECT concat_ws(' | ', 'extension', extversion, extnamespace::regnamespace, extrelocatable, cardinality(extconfig)) FROM extension
) lines
ORDER BY line COLLATE "C";

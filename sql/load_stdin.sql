CREATE VIEW quad.load_stdin AS SELECT NULL::pg_catalog.text AS line WHERE false;
COMMENT ON VIEW quad.load_stdin IS 'takes the lines of an RDF document by COPY ... FROM STDIN '
    '(FORMAT csv, DELIMITER E''\x01'', QUOTE E''\x02''), or pieces of it by (FORMAT binary)';
CREATE TRIGGER load_begin BEFORE INSERT ON quad.load_stdin FOR EACH STATEMENT EXECUTE FUNCTION quad.load_stdin_begin();
CREATE TRIGGER load_line INSTEAD OF INSERT ON quad.load_stdin FOR EACH ROW EXECUTE FUNCTION quad.load_stdin_line();
CREATE TRIGGER load_end AFTER INSERT ON quad.load_stdin FOR EACH STATEMENT EXECUTE FUNCTION quad.load_stdin_end();
GRANT INSERT ON quad.load_stdin TO PUBLIC;
CREATE VIEW quad.load_stdin_bytes AS SELECT NULL::pg_catalog.bytea AS piece WHERE false;
COMMENT ON VIEW quad.load_stdin_bytes IS
    'takes an RDF document in pieces of bytes, cut anywhere, compressed as the setting quad.stdin_compression says';
CREATE TRIGGER load_begin BEFORE INSERT ON quad.load_stdin_bytes FOR EACH STATEMENT
    EXECUTE FUNCTION quad.load_stdin_begin();
CREATE TRIGGER load_piece INSTEAD OF INSERT ON quad.load_stdin_bytes FOR EACH ROW
    EXECUTE FUNCTION quad.load_stdin_piece();
CREATE TRIGGER load_end AFTER INSERT ON quad.load_stdin_bytes FOR EACH STATEMENT EXECUTE FUNCTION quad.load_stdin_end();
GRANT INSERT ON quad.load_stdin_bytes TO PUBLIC;

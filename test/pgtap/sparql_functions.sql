-- Operators and functions of SPARQL 1.1 (sections 17.2 to 17.5), asked in SPARQL.
begin;
select plan(287);
-- The value of an expression in N-Triples form, datatypes of XML Schema by their local name; NULL for an error.
create function pg_temp.value(expression text) returns text language sql as $$
    select replace(replace(row->>'v', '<http://www.w3.org/2001/XMLSchema#', '<xsd:'), '"^^<xsd:integer>', '"')
    from quad.sparql('BASE <http://e/base/> PREFIX : <http://e/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> SELECT (' || expression
        || ' AS ?v) {}') as row $$;
create function pg_temp.gives(section text, expression text, expected text) returns text language sql as $$
    select is(pg_temp.value(expression), expected, section || ' ' || expression) $$;

-- Filter evaluation
select pg_temp.gives(section, expression, expected) from (values
    ('17.2', $$(1/0) || true$$, '"true"^^<xsd:boolean>'),
    ('17.2', $$(1/0) || false$$, null),
    ('17.2', $$(1/0) && false$$, '"false"^^<xsd:boolean>'),
    ('17.2', $$(1/0) && true$$, null),
    ('17.2', $$! (1/0)$$, null),
    ('17.2', $$! "a"$$, '"false"^^<xsd:boolean>')
) as tests(section, expression, expected);

-- Effective boolean value
select pg_temp.gives(section, expression, expected) from (values
    ('17.2.2', $$IF("a"@en, 1, 2)$$, '"1"'),
    ('17.2.2', $$IF(""@en, 1, 2)$$, '"2"'),
    ('17.2.2', $$IF("x"^^xsd:integer, 1, 2)$$, '"2"'),
    ('17.2.2', $$IF("x"^^xsd:boolean, 1, 2)$$, '"2"'),
    ('17.2.2', $$IF("0"^^xsd:boolean, 1, 2)$$, '"2"'),
    ('17.2.2', $$IF("NaN"^^xsd:double, 1, 2)$$, '"2"'),
    ('17.2.2', $$IF(:a, 1, 2)$$, null),
    ('17.2.2', $$IF("a"^^:t, 1, 2)$$, null),
    ('17.2.2', $$IF(NOW(), 1, 2)$$, null)
) as tests(section, expression, expected);

-- Operator mapping
select pg_temp.gives(section, expression, expected) from (values
    ('17.3', $$1/2$$, '"0.5"^^<xsd:decimal>'),
    ('17.3', $$4/2$$, '"2"^^<xsd:decimal>'),
    ('17.3', $$0/1.5$$, '"0"^^<xsd:decimal>'),
    ('17.3', $$1/0$$, null),
    ('17.3', $$1.0/0$$, null),
    ('17.3', $$1e0/0$$, '"INF"^^<xsd:double>'),
    ('17.3', $$-1e0/0$$, '"-INF"^^<xsd:double>'),
    ('17.3', $$0e0/0$$, '"NaN"^^<xsd:double>'),
    ('17.3', $$1 + 1.5$$, '"2.5"^^<xsd:decimal>'),
    ('17.3', $$1 + 1e0$$, '"2.0E0"^^<xsd:double>'),
    ('17.3', $$"1"^^xsd:float + 1.5$$, '"2.5E0"^^<xsd:float>'),
    ('17.3', $$"1"^^xsd:float + 1e0$$, '"2.0E0"^^<xsd:double>'),
    ('17.3', $$"1"^^xsd:byte + "2"^^xsd:unsignedInt$$, '"3"'),
    ('17.3', $$"01"^^xsd:integer$$, '"01"'),
    ('17.3', $$+ "01"^^xsd:integer$$, '"1"'),
    ('17.3', $$0.1 + 0.2$$, '"0.3"^^<xsd:decimal>'),
    ('17.3', $$3 - 5$$, '"-2"'),
    ('17.3', $$2 * 3.50$$, '"7"^^<xsd:decimal>'),
    ('17.3', $$- "a"$$, null),
    ('17.3', $$"1" + 1$$, null),
    ('17.3', $$1 = 1.0$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$1 = 1e0$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"01"^^xsd:integer = 1$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"x"^^xsd:integer = 1$$, null),
    ('17.3', $$"x"^^xsd:integer = "x"^^xsd:integer$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"a"^^:t = "b"^^:t$$, null),
    ('17.3', $$"a"^^:t != "b"^^:t$$, null),
    ('17.3', $$"a" = "a"@en$$, '"false"^^<xsd:boolean>'),
    ('17.3', $$"a"@en = "a"@EN$$, '"true"^^<xsd:boolean>'),
    ('17.3.1', $$"a"@en < "b"@EN$$, '"true"^^<xsd:boolean>'),
    ('17.3.1', $$"a"@en >= "b"@en$$, '"false"^^<xsd:boolean>'),
    ('17.3.1', $$"a"@en < "b"@de$$, null),
    ('17.3.1', $$"a"@en < "b"$$, null),
    ('19.8', $$TRUE && ! False$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$:a = :a$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$:a < :b$$, null),
    ('17.3', $$:a <= :a$$, null),
    ('17.3', $$"a" < "b"$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"a" < 1$$, null),
    ('17.3', $$1 < "NaN"^^xsd:double$$, '"false"^^<xsd:boolean>'),
    ('17.3', $$1 >= "NaN"^^xsd:double$$, '"false"^^<xsd:boolean>'),
    ('17.3', $$1 < "INF"^^xsd:double$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$true > false$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"NaN"^^xsd:double = "NaN"^^xsd:double$$, '"false"^^<xsd:boolean>'),
    ('17.3', $$"NaN"^^xsd:double != "NaN"^^xsd:double$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"2020-01-01T00:00:00Z"^^xsd:dateTime = "2020-01-01T01:00:00+01:00"^^xsd:dateTime$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"2020-01-01T00:00:00Z"^^xsd:dateTime < "2020-01-01T00:00:00"^^xsd:dateTime$$, null),
    ('17.3', $$"2020-01-01T00:00:00Z"^^xsd:dateTime < "2020-01-03T00:00:00"^^xsd:dateTime$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"2020-01-01T24:00:00Z"^^xsd:dateTime = "2020-01-02T00:00:00Z"^^xsd:dateTime$$, '"true"^^<xsd:boolean>')
) as tests(section, expression, expected);

-- Functional forms
select pg_temp.gives(section, expression, expected) from (values
    ('17.4.1.1', $$BOUND(?x)$$, '"false"^^<xsd:boolean>'),
    ('17.4.1.2', $$IF(true, 1, 1/0)$$, '"1"'),
    ('17.4.1.2', $$IF(false, 1, 1/0)$$, null),
    ('17.4.1.2', $$IF(1/0, 1, 2)$$, null),
    ('17.4.1.3', $$COALESCE(1/0, ?x, 2)$$, '"2"'),
    ('17.4.1.3', $$COALESCE(1/0, ?x)$$, null),
    ('17.4.1.3', $$COALESCE()$$, null),
    ('17.4.1.8', $$sameTerm(1, 1.0)$$, '"false"^^<xsd:boolean>'),
    ('17.4.1.8', $$sameTerm("01"^^xsd:integer, 1)$$, '"false"^^<xsd:boolean>'),
    ('17.4.1.8', $$sameTerm(1 + 1, 2)$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.9', $$2 IN (1, 2, 3)$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.9', $$2 IN ()$$, '"false"^^<xsd:boolean>'),
    ('17.4.1.9', $$?x IN ()$$, null),
    ('17.4.1.9', $$2 IN (:a, "str", 2.0)$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.9', $$2 IN (1/0, 2)$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.9', $$2 IN (2, 1/0)$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.9', $$2 IN (3, 1/0)$$, null),
    ('17.4.1.10', $$2 NOT IN (1, 2, 3)$$, '"false"^^<xsd:boolean>'),
    ('17.4.1.10', $$2 NOT IN ()$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.10', $$"x"^^xsd:integer NOT IN ()$$, '"true"^^<xsd:boolean>'),
    ('17.4.1.10', $$2 NOT IN (3, 1/0)$$, null)
) as tests(section, expression, expected);

-- Functions on RDF terms
select pg_temp.gives(section, expression, expected) from (values
    ('17.4.2.1', $$isIRI(:a)$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.1', $$isURI("a")$$, '"false"^^<xsd:boolean>'),
    ('17.4.2.2', $$isBLANK(BNODE())$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.3', $$isLITERAL("a"@en)$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.4', $$isNUMERIC(12)$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.4', $$isNUMERIC("12")$$, '"false"^^<xsd:boolean>'),
    ('17.4.2.4', $$isNUMERIC("1200"^^xsd:byte)$$, '"false"^^<xsd:boolean>'),
    ('17.4.2.4', $$isNUMERIC("12"^^xsd:nonNegativeInteger)$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.4', $$isNUMERIC(:a)$$, '"false"^^<xsd:boolean>'),
    ('17.4.2.4', $$isNUMERIC(?x)$$, null),
    ('17.4.2.5', $$STR("01"^^xsd:integer)$$, '"01"'),
    ('17.4.2.5', $$STR(:a)$$, '"http://e/a"'),
    ('17.4.2.5', $$STR("a"@en)$$, '"a"'),
    ('17.4.2.5', $$STR(BNODE())$$, null),
    ('17.4.2.6', $$LANG("a"@en)$$, '"en"'),
    ('17.4.2.6', $$LANG("a")$$, '""'),
    ('17.4.2.6', $$LANG(1)$$, '""'),
    ('17.4.2.6', $$LANG(:a)$$, null),
    ('17.4.2.7', $$DATATYPE("a")$$, '<xsd:string>'),
    ('17.4.2.7', $$DATATYPE("a"@en)$$, '<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>'),
    ('17.4.2.7', $$DATATYPE(1.0)$$, '<xsd:decimal>'),
    ('17.4.2.7', $$DATATYPE("a"^^:t)$$, '<http://e/t>'),
    ('17.4.2.7', $$DATATYPE(:a)$$, null),
    ('17.4.2.8', $$IRI("b")$$, '<http://e/base/b>'),
    ('17.4.2.8', $$URI("//h/b")$$, '<http://h/b>'),
    ('17.4.2.8', $$IRI("http://a/b")$$, '<http://a/b>'),
    ('17.4.2.8', $$IRI(:a)$$, '<http://e/a>'),
    ('17.4.2.8', $$IRI("b"@en)$$, null),
    ('17.4.2.8', $$IRI(1)$$, null),
    ('17.4.2.8', $$IRI("http://a b")$$, null),
    ('17.4.2.9', $$BNODE("a") = BNODE("a")$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.9', $$BNODE("a") = BNODE("b")$$, '"false"^^<xsd:boolean>'),
    ('17.4.2.9', $$BNODE() = BNODE()$$, '"false"^^<xsd:boolean>'),
    ('17.4.2.9', $$BNODE(1)$$, null),
    ('17.4.2.10', $$STRDT("1", xsd:integer)$$, '"1"'),
    ('17.4.2.10', $$STRDT("iiii", :t)$$, '"iiii"^^<http://e/t>'),
    ('17.4.2.10', $$STRDT("a", xsd:string)$$, '"a"'),
    ('17.4.2.10', $$STRDT("a"@en, :t)$$, null),
    ('17.4.2.10', $$STRDT(1, :t)$$, null),
    ('17.4.2.10', $$STRDT("a", "b")$$, null),
    ('17.4.2.11', $$STRLANG("chat", "en")$$, '"chat"@en'),
    ('17.4.2.11', $$STRLANG("chat"@en, "en")$$, null),
    ('17.4.2.11', $$STRLANG("chat", "")$$, null),
    ('17.4.2.11', $$STRLANG(1, "en")$$, null),
    ('17.4.2.12', $$isIRI(UUID())$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.12', $$REGEX(STR(UUID()), "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")$$, '"true"^^<xsd:boolean>'),
    ('17.4.2.13', $$STRLEN(STRUUID())$$, '"36"'),
    ('17.4.2.13', $$STRUUID() = STRUUID()$$, '"false"^^<xsd:boolean>')
) as tests(section, expression, expected);

-- Functions on strings
select pg_temp.gives(section, expression, expected) from (values
    ('17.4.3.2', $$STRLEN("chat")$$, '"4"'),
    ('17.4.3.2', $$STRLEN("chat"@en)$$, '"4"'),
    ('17.4.3.2', $$STRLEN("𝒳é")$$, '"2"'),
    ('17.4.3.2', $$STRLEN(1)$$, null),
    ('17.4.3.3', $$SUBSTR("foobar", 4)$$, '"bar"'),
    ('17.4.3.3', $$SUBSTR("foobar"@en, 4, 1)$$, '"b"@en'),
    ('17.4.3.3', $$SUBSTR("a𝒳c", 2, 1)$$, '"𝒳"'),
    ('17.4.3.3', $$SUBSTR("12345", 1.5, 2.6)$$, null),
    ('17.4.3.3', $$SUBSTR("12345", 0, 3)$$, '"12"'),
    ('17.4.3.3', $$SUBSTR("12345", 5, -3)$$, '""'),
    ('17.4.3.3', $$SUBSTR("12345", -3, 5)$$, '"1"'),
    ('17.4.3.3', $$SUBSTR("12345", 1, "a")$$, null),
    ('17.4.3.3', $$SUBSTR(1, 1)$$, null),
    ('17.4.3.4', $$UCASE("foo"@en)$$, '"FOO"@en'),
    ('17.4.3.4', $$UCASE("straße")$$, '"STRASSE"'),
    ('17.4.3.5', $$LCASE("BAR")$$, '"bar"'),
    ('17.4.3.6', $$STRSTARTS("foobar", "foo")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.6', $$STRSTARTS("foobar"@en, "foo"@en)$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.6', $$STRSTARTS("foobar"@en, "foo")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.6', $$STRSTARTS("foobar", "foo"@en)$$, null),
    ('17.4.3.6', $$STRSTARTS("foobar"@en, "foo"@fr)$$, null),
    ('17.4.3.6', $$STRSTARTS("foobar", "")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.7', $$STRENDS("foobar", "bar")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.8', $$CONTAINS("foobar", "oba")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.8', $$CONTAINS("foobar", 1)$$, null),
    ('17.4.3.9', $$STRBEFORE("abc", "b")$$, '"a"'),
    ('17.4.3.9', $$STRBEFORE("abc"@en, "bc")$$, '"a"@en'),
    ('17.4.3.9', $$STRBEFORE("abc"@en, "b"@cy)$$, null),
    ('17.4.3.9', $$STRBEFORE("abc"@en, "")$$, '""@en'),
    ('17.4.3.9', $$STRBEFORE("abc", "xyz")$$, '""'),
    ('17.4.3.9', $$STRBEFORE("abc"@en, "z"@en)$$, '""'),
    ('17.4.3.9', $$STRBEFORE("abc"@en, "z")$$, '""'),
    ('17.4.3.9', $$STRBEFORE("abc"@en, ""@en)$$, '""@en'),
    ('17.4.3.10', $$STRAFTER("abc", "b")$$, '"c"'),
    ('17.4.3.10', $$STRAFTER("abc"@en, "ab")$$, '"c"@en'),
    ('17.4.3.10', $$STRAFTER("abc"@en, "b"@cy)$$, null),
    ('17.4.3.10', $$STRAFTER("abc"@en, "")$$, '"abc"@en'),
    ('17.4.3.10', $$STRAFTER("abc", "xyz")$$, '""'),
    ('17.4.3.10', $$STRAFTER("abc"@en, "z"@en)$$, '""'),
    ('17.4.3.10', $$STRAFTER("abc"@en, ""@en)$$, '"abc"@en'),
    ('17.4.3.11', $$ENCODE_FOR_URI("Los Angeles")$$, '"Los%20Angeles"'),
    ('17.4.3.11', $$ENCODE_FOR_URI("é~-_.!*'()"@en)$$, '"%C3%A9~-_.%21%2A%27%28%29"'),
    ('17.4.3.12', $$CONCAT("foo", "bar")$$, '"foobar"'),
    ('17.4.3.12', $$CONCAT("foo"@en, "bar"@en)$$, '"foobar"@en'),
    ('17.4.3.12', $$CONCAT("foo"@en, "bar")$$, '"foobar"'),
    ('17.4.3.12', $$CONCAT("foo"@en, "bar"@fr)$$, '"foobar"'),
    ('17.4.3.12', $$CONCAT()$$, '""'),
    ('17.4.3.12', $$CONCAT("a"@en)$$, '"a"@en'),
    ('17.4.3.12', $$CONCAT("a", 1)$$, null),
    ('17.4.3.13', $$LANGMATCHES("de-DE-1996", "de-de")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.13', $$LANGMATCHES("de-Latn-DE", "de-DE")$$, '"false"^^<xsd:boolean>'),
    ('17.4.3.13', $$LANGMATCHES("den", "de")$$, '"false"^^<xsd:boolean>'),
    ('17.4.3.13', $$LANGMATCHES("fr", "*")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.13', $$LANGMATCHES("", "*")$$, '"false"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("Alice", "^ali", "i")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("a.c", "a.c", "q")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("abc", "a.c", "q")$$, '"false"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("a\nb", "a.b")$$, '"false"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("a\nb", "a.b", "s")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("a\nb", "^b$", "m")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("abc", "a b c", "x")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX("abc", "(")$$, null),
    ('17.4.3.14', $$REGEX("abc", "a", "y")$$, null),
    ('17.4.3.14', $$REGEX("abc"@en, "b")$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.14', $$REGEX(1, "1")$$, null),
    ('17.4.3.15', $$REPLACE("abcd", "b", "Z")$$, '"aZcd"'),
    ('17.4.3.15', $$REPLACE("abab", "B", "Z", "i")$$, '"aZaZ"'),
    ('17.4.3.15', $$REPLACE("abab", "B.", "Z", "i")$$, '"aZb"'),
    ('17.4.3.15', $$REPLACE("darted", "^(.*?)d(.*)$", "$1c$2")$$, '"carted"'),
    ('17.4.3.15', $$REPLACE("abracadabra", "a(.)", "a$1$1")$$, '"abbraccaddabbra"'),
    ('17.4.3.15', $$REPLACE("abc", "b", "\\$")$$, '"a$c"'),
    ('17.4.3.15', $$REPLACE("abc"@en, "b", "x")$$, '"axc"@en'),
    ('17.4.3.15', $$REPLACE("abracadabra", "^a|z*", "x")$$, null),
    ('17.4.3.15', $$REPLACE("a.b.c", ".", "-", "q")$$, '"a-b-c"'),
    ('17.4.3.15', $$REPLACE("abc", "b", "$")$$, null)
) as tests(section, expression, expected);

-- Functions on numerics
select pg_temp.gives(section, expression, expected) from (values
    ('17.4.4.1', $$ABS(-1.5)$$, '"1.5"^^<xsd:decimal>'),
    ('17.4.4.1', $$ABS("a")$$, null),
    ('17.4.4.2', $$ROUND(2.4999)$$, '"2"^^<xsd:decimal>'),
    ('17.4.4.2', $$ROUND(2.5)$$, '"3"^^<xsd:decimal>'),
    ('17.4.4.2', $$ROUND(-2.5)$$, '"-2"^^<xsd:decimal>'),
    ('17.4.4.2', $$ROUND(2.5e0)$$, '"3.0E0"^^<xsd:double>'),
    ('17.4.4.3', $$CEIL(10.5)$$, '"11"^^<xsd:decimal>'),
    ('17.4.4.3', $$CEIL(-10.5)$$, '"-10"^^<xsd:decimal>'),
    ('17.4.4.4', $$FLOOR(-10.5)$$, '"-11"^^<xsd:decimal>'),
    ('17.4.4.4', $$FLOOR(7)$$, '"7"'),
    ('17.4.4.5', $$RAND() >= 0 && RAND() < 1$$, '"true"^^<xsd:boolean>'),
    ('17.4.4.5', $$DATATYPE(RAND())$$, '<xsd:double>')
) as tests(section, expression, expected);

-- Functions on dates and times
select pg_temp.gives(section, expression, expected) from (values
    ('17.4.5.1', $$NOW() = NOW()$$, '"true"^^<xsd:boolean>'),
    ('17.4.5.1', $$DATATYPE(NOW())$$, '<xsd:dateTime>'),
    ('17.4.5.2', $$YEAR("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"2011"'),
    ('17.4.5.2', $$YEAR("2011")$$, null),
    ('17.4.5.3', $$MONTH("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"1"'),
    ('17.4.5.4', $$DAY("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"10"'),
    ('17.4.5.5', $$HOURS("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"14"'),
    ('17.4.5.6', $$MINUTES("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"45"'),
    ('17.4.5.7', $$SECONDS("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"13.815"^^<xsd:decimal>'),
    ('17.4.5.7', $$SECONDS("2011-01-10T14:45:13Z"^^xsd:dateTime)$$, '"13"^^<xsd:decimal>'),
    ('17.4.5.8', $$TIMEZONE("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"-PT5H"^^<xsd:dayTimeDuration>'),
    ('17.4.5.8', $$TIMEZONE("2011-01-10T14:45:13.815Z"^^xsd:dateTime)$$, '"PT0S"^^<xsd:dayTimeDuration>'),
    ('17.4.5.8', $$TIMEZONE("2011-01-10T14:45:13.815"^^xsd:dateTime)$$, null),
    ('17.4.5.9', $$TZ("2011-01-10T14:45:13.815-05:00"^^xsd:dateTime)$$, '"-05:00"'),
    ('17.4.5.9', $$TZ("2011-01-10T14:45:13.815Z"^^xsd:dateTime)$$, '"Z"'),
    ('17.4.5.9', $$TZ("2011-01-10T14:45:13.815"^^xsd:dateTime)$$, '""')
) as tests(section, expression, expected);

-- Hash functions
select pg_temp.gives(section, expression, expected) from (values
    ('17.4.6.1', $$MD5("abc")$$, '"900150983cd24fb0d6963f7d28e17f72"'),
    ('17.4.6.1', $$MD5("abc"@en)$$, null),
    ('17.4.6.1', $$MD5(1)$$, null),
    ('17.4.6.2', $$SHA1("abc")$$, '"a9993e364706816aba3e25717850c26c9cd0d89d"'),
    ('17.4.6.3', $$SHA256("abc")$$, '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"')
) as tests(section, expression, expected);

-- Constructor functions
select pg_temp.gives(section, expression, expected) from (values
    ('17.5', $$xsd:boolean("1")$$, '"true"^^<xsd:boolean>'),
    ('17.5', $$xsd:boolean(0.0)$$, '"false"^^<xsd:boolean>'),
    ('17.5', $$xsd:boolean("0"^^xsd:double)$$, '"false"^^<xsd:boolean>'),
    ('17.5', $$xsd:boolean("TRUE")$$, null),
    ('17.5', $$xsd:integer("12")$$, '"12"'),
    ('17.5', $$xsd:integer("12.5")$$, null),
    ('17.5', $$xsd:integer(12.9)$$, '"12"'),
    ('17.5', $$xsd:integer(-12.9e0)$$, '"-12"'),
    ('17.5', $$xsd:integer(true)$$, '"1"'),
    ('17.5', $$xsd:integer("1e3")$$, null),
    ('17.5', $$xsd:integer(1/0e0)$$, null),
    ('17.5', $$xsd:decimal("1.50")$$, '"1.5"^^<xsd:decimal>'),
    ('17.5', $$xsd:decimal(1e2)$$, '"100"^^<xsd:decimal>'),
    ('17.5', $$xsd:decimal("1e2")$$, null),
    ('17.5', $$xsd:double("1")$$, '"1.0E0"^^<xsd:double>'),
    ('17.5', $$xsd:double("INF")$$, '"INF"^^<xsd:double>'),
    ('17.5', $$xsd:double("a")$$, null),
    ('17.5', $$xsd:float(1.5)$$, '"1.5E0"^^<xsd:float>'),
    ('17.5', $$xsd:string(1e6)$$, '"1.0E6"'),
    ('17.5', $$xsd:string(1.5e0)$$, '"1.5"'),
    ('17.5', $$xsd:string(1e0)$$, '"1"'),
    ('17.5', $$xsd:string("1.50"^^xsd:decimal)$$, '"1.5"'),
    ('17.5', $$xsd:string("01"^^xsd:integer)$$, '"1"'),
    ('17.5', $$xsd:string(:a)$$, '"http://e/a"'),
    ('17.5', $$xsd:string(true)$$, '"true"'),
    ('17.5', $$xsd:dateTime("2020-01-01T00:00:00Z")$$, '"2020-01-01T00:00:00Z"^^<xsd:dateTime>'),
    ('17.5', $$xsd:dateTime("2020-01-01")$$, null),
    ('17.5', $$xsd:dateTime("2020-01-01"^^xsd:date)$$, '"2020-01-01T00:00:00"^^<xsd:dateTime>'),
    ('17.5', $$xsd:date("2020-01-01T10:00:00Z"^^xsd:dateTime)$$, '"2020-01-01Z"^^<xsd:date>'),
    ('17.5', $$xsd:integer(:a)$$, null),
    ('17.5', $$xsd:string("a"@en)$$, null),
    ('17.5', $$xsd:dateTime(1)$$, null),
    ('17.5', $$xsd:time("10:00:00")$$, '"10:00:00"^^<xsd:time>'),
    ('17.5', $$xsd:gYear("2020")$$, '"2020"^^<xsd:gYear>'),
    ('17.5', $$xsd:long("7")$$, '"7"^^<xsd:long>'),
    ('17.5', $$xsd:dayTimeDuration("PT60M")$$, '"PT1H"^^<xsd:dayTimeDuration>')
) as tests(section, expression, expected);

-- Extensible value testing
select pg_temp.gives(section, expression, expected) from (values
    ('17.6', $$:unknown(1)$$, null),
    ('17.6', $$COALESCE(:unknown(1, 2), "none")$$, '"none"'),
    ('17.6', $$:unknown()$$, null)
) as tests(section, expression, expected);

-- Values at the edges of their types
select pg_temp.gives(section, expression, expected) from (values
    ('17.2.2', $$IF("true"^^:x, 1, 2)$$, null),
    ('17.2.2', $$IF("true"^^xsd:integer, 1, 2)$$, '"2"'),
    ('17.2.2', $$IF("false"^^xsd:boolean, 1, 2)$$, '"2"'),
    ('17.3', $$"2020-01-01T00:00:00-00:01"^^xsd:dateTime = "2020-01-01T00:01:00Z"^^xsd:dateTime$$, '"true"^^<xsd:boolean>'),
    ('17.3', $$"P1M1000000000000000D"^^xsd:duration > "P1D"^^xsd:duration$$, '"true"^^<xsd:boolean>'),
    ('17.4.3.15', $$REPLACE("abcb", "b", "[$0]")$$, '"a[b]c[b]"')
) as tests(section, expression, expected);
select throws_ok($$select pg_temp.value('STRLEN(REPLACE(' || repeat('REPLACE(', 2) || '"' || repeat('a', 100) || '"'
    || repeat(', "a", "' || repeat('a', 100) || '")', 2) || ', "a", "' || repeat('b', 1000) || '"))')$$, '54000', null, 'a text of a gigabyte');

select * from finish();
rollback;

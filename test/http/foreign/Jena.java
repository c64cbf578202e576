import org.apache.jena.query.*;
import org.apache.jena.rdf.model.*;
import org.apache.jena.rdfconnection.*;
import java.net.Authenticator;
import java.net.PasswordAuthentication;
import java.net.http.HttpClient;
import org.apache.jena.http.auth.AuthEnv;

/** Apache Jena's RDFConnection against an endpoint: graph store, update, all forms of queries. Prints a line for each step. */
public class Jena {
    public static void main(String[] arguments) {
        String url = arguments[0];
        HttpClient http = HttpClient.newBuilder().authenticator(new Authenticator() {
            @Override protected PasswordAuthentication getPasswordAuthentication() {
                return new PasswordAuthentication("http_writer", "secret".toCharArray());
            }
        }).build();
        RDFConnectionRemoteBuilder builder = RDFConnectionRemote.newBuilder().destination(url).httpClient(http);
        try (RDFConnection c = builder.queryEndpoint("sparql").updateEndpoint("update").gspEndpoint("data").build()) {
            Model model = ModelFactory.createDefaultModel();
            Resource ada = model.createResource("http://x/ada");
            ada.addProperty(model.createProperty("http://x/name"), model.createLiteral("Ada \"L\"\nä", "en"));
            ada.addProperty(model.createProperty("http://x/born"), "1815", org.apache.jena.datatypes.xsd.XSDDatatype.XSDinteger);
            c.put("http://x/jena", model);
            System.out.println("put " + c.fetch("http://x/jena").isIsomorphicWith(model));
            Resource other = model.createResource("http://x/b");
            c.load("http://x/jena", ModelFactory.createDefaultModel().add(ada, model.createProperty("http://x/knows"), other));
            System.out.println("load " + c.fetch("http://x/jena").size());
            c.update("INSERT DATA { GRAPH <http://x/jena> { <http://x/ada> <http://x/died> 1852 } }");
            c.querySelect("SELECT ?y { GRAPH ?g { ?s <http://x/died> ?y } }", row -> System.out.println("select " + row.getLiteral("y").getInt()));
            System.out.println("ask " + c.queryAsk("ASK { GRAPH <http://x/jena> { ?s <http://x/born> 1815 } }"));
            System.out.println("construct " + c.queryConstruct("CONSTRUCT { ?s ?p ?o } { GRAPH ?g { ?s ?p ?o } }").size());
            System.out.println("describe " + (c.queryDescribe("DESCRIBE <http://x/ada> FROM <http://x/jena>").size() > 0));
            c.delete("http://x/jena");
            System.out.println("delete " + c.queryAsk("ASK { GRAPH <http://x/jena> { ?s ?p ?o } }"));
            try {
                c.queryAsk("ASK { ?s ?p ");
            } catch (RuntimeException error) {
                System.out.println("error " + error.getClass().getSimpleName());
            }
        }
    }
}

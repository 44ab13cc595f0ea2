"""What the bot's page says, in each language: one table, a row a sentence. ``{...}`` are the settings' values.

A sentence is left out by the template, never by the table, so that no language promises more than another.
"""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """One sentence in every language of the page; the fields' names are the codes of ``<html lang>``."""

    en: str
    de: str
    fr: str
    es: str


LANGUAGES = {"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español"}

PURPOSES = {
    "archive": Words(
        "The pages are kept in an archive.",
        "Die Seiten werden in einem Archiv aufbewahrt.",
        "Les pages sont conservées dans une archive.",
        "Las páginas se conservan en un archivo.",
    ),
    "search": Words(
        "The pages go into a search index that links to them.",
        "Die Seiten kommen in einen Suchindex, der auf sie verweist.",
        "Les pages alimentent un index de recherche qui renvoie vers elles.",
        "Las páginas se incorporan a un índice de búsqueda que enlaza con ellas.",
    ),
    "research": Words(
        "The pages are studied in research.",
        "Die Seiten dienen der Forschung.",
        "Les pages servent à la recherche.",
        "Las páginas se usan para la investigación.",
    ),
    "ai-train": Words(
        "The pages are used to train AI models.",
        "Mit den Seiten werden KI-Modelle trainiert.",
        "Les pages servent à entraîner des modèles d’IA.",
        "Las páginas se usan para entrenar modelos de IA.",
    ),
    "ai-input": Words(
        "AI models read the pages when they answer questions.",
        "KI-Modelle lesen die Seiten, wenn sie Fragen beantworten.",
        "Des modèles d’IA lisent les pages pour répondre à des questions.",
        "Modelos de IA leen las páginas al responder preguntas.",
    ),
}
"""By the words of PURPOSE. Another word stands on the page as it is."""

RENDERS = {
    "never": Words(
        "It runs no scripts of a page.",
        "Er führt keine Skripte einer Seite aus.",
        "Il n’exécute aucun script d’une page.",
        "No ejecuta scripts de las páginas.",
    ),
    "auto": Words(
        "A page that shows nothing without its scripts is rendered in a browser; what that loads keeps to the same rules.",
        "Eine Seite, die ohne ihre Skripte nichts zeigt, wird in einem Browser dargestellt; was dieser lädt, folgt denselben Regeln.",
        "Une page qui ne montre rien sans ses scripts est affichée dans un navigateur ; ce qu’il charge suit les mêmes règles.",
        "Una página que sin sus scripts no muestra nada se abre en un navegador; lo que este carga sigue las mismas reglas.",
    ),
    "always": Words(
        "Every page is rendered in a browser; what that loads keeps to the same rules.",
        "Jede Seite wird in einem Browser dargestellt; was dieser lädt, folgt denselben Regeln.",
        "Chaque page est affichée dans un navigateur ; ce qu’il charge suit les mêmes règles.",
        "Cada página se abre en un navegador; lo que este carga sigue las mismas reglas.",
    ),
}
"""By the words of RENDER."""

SENTENCES = {
    "title": Words("{name}, a web crawler", "{name}, ein Webcrawler", "{name}, un robot d’indexation", "{name}, un rastreador web"),
    "what": Words(
        "{name} is a web crawler. It follows links and keeps what it is given in standard WARC files.",
        "{name} ist ein Webcrawler. Er folgt Links und bewahrt, was er bekommt, in WARC-Dateien auf.",
        "{name} est un robot d’indexation. Il suit les liens et conserve ce qu’il reçoit dans des fichiers WARC.",
        "{name} es un rastreador web. Sigue enlaces y guarda lo que recibe en archivos WARC.",
    ),
    "operator": Words("It is run by {operator}.", "Ihn betreibt {operator}.", "Il est exploité par {operator}.", "Lo opera {operator}."),
    "calls-itself": Words("It calls itself:", "Er nennt sich:", "Il se présente ainsi :", "Se identifica así:"),
    "asks-from": Words("It asks from:", "Er fragt von:", "Il interroge depuis :", "Pregunta desde:"),
    "for-programs": Words("for programs", "für Programme", "pour les programmes", "para programas"),
    "any-address": Words("Its addresses may change.", "Seine Adressen können sich ändern.", "Ses adresses peuvent changer.", "Sus direcciones pueden cambiar."),
    "signed": Words(
        "Its requests are signed (Web Bot Auth, RFC 9421). Its keys:",
        "Seine Anfragen sind signiert (Web Bot Auth, RFC 9421). Seine Schlüssel:",
        "Ses requêtes sont signées (Web Bot Auth, RFC 9421). Ses clés :",
        "Sus peticiones van firmadas (Web Bot Auth, RFC 9421). Sus claves:",
    ),
    "behaves": Words("How it behaves", "Wie er sich verhält", "Son comportement", "Cómo se comporta"),
    "one-at-a-time": Words(
        "One request at a time to a host, and to an IP address.",
        "Eine Anfrage zur Zeit an einen Host und an eine IP-Adresse.",
        "Une seule requête à la fois par hôte et par adresse IP.",
        "Una sola petición a la vez por host y por dirección IP.",
    ),
    "pace": Words(
        "Between an answer's end and the next request {multiplier} times the mean time that your server took to answer, at least {least} and at most {most} seconds.",
        "Vom Ende einer Antwort bis zur nächsten Anfrage das {multiplier}-Fache der mittleren Antwortzeit Ihres Servers, mindestens {least} und höchstens {most} Sekunden.",
        "Entre la fin d’une réponse et la requête suivante, {multiplier} fois le temps de réponse moyen de votre serveur, au moins {least} et au plus {most} secondes.",
        "Entre el final de una respuesta y la petición siguiente, {multiplier} veces el tiempo medio de respuesta de su servidor, al menos {least} y como máximo {most} segundos.",
    ),
    "pace-unbounded": Words(
        "Between an answer's end and the next request {multiplier} times the mean time that your server took to answer, at least {least} seconds.",
        "Vom Ende einer Antwort bis zur nächsten Anfrage das {multiplier}-Fache der mittleren Antwortzeit Ihres Servers, mindestens {least} Sekunden.",
        "Entre la fin d’une réponse et la requête suivante, {multiplier} fois le temps de réponse moyen de votre serveur, au moins {least} secondes.",
        "Entre el final de una respuesta y la petición siguiente, {multiplier} veces el tiempo medio de respuesta de su servidor, al menos {least} segundos.",
    ),
    "pace-fixed": Words(
        "{least} seconds between an answer's end and the next request.",
        "{least} Sekunden vom Ende einer Antwort bis zur nächsten Anfrage.",
        "{least} secondes entre la fin d’une réponse et la requête suivante.",
        "{least} segundos entre el final de una respuesta y la petición siguiente.",
    ),
    "quiet": Words(
        "In the hours in which your site seems to have most visitors it is three times slower, where it has much to ask.",
        "In den Stunden, in denen Ihre Website die meisten Besucher zu haben scheint, ist er dreimal langsamer, wenn er viel abzufragen hat.",
        "Aux heures où votre site semble recevoir le plus de visiteurs, il est trois fois plus lent s’il a beaucoup à demander.",
        "En las horas en que su sitio parece tener más visitantes es tres veces más lento si tiene mucho que pedir.",
    ),
    "robots": Words(
        "It obeys robots.txt (RFC 9309) and reads it again after {hours} hours. Without an answer to that it asks for nothing.",
        "Er befolgt robots.txt (RFC 9309) und liest sie nach {hours} Stunden neu. Ohne Antwort darauf fragt er nichts ab.",
        "Il respecte robots.txt (RFC 9309) et le relit après {hours} heures. Sans réponse à cette demande, il ne demande rien.",
        "Obedece robots.txt (RFC 9309) y lo relee pasadas {hours} horas. Si no obtiene respuesta, no pide nada.",
    ),
    "delays": Words(
        "Crawl-delay and Request-rate are kept in full, however long.",
        "Crawl-delay und Request-rate werden voll eingehalten, wie lang sie auch sind.",
        "Crawl-delay et Request-rate sont respectés entièrement, quelle que soit leur durée.",
        "Crawl-delay y Request-rate se cumplen por completo, por largos que sean.",
    ),
    "rests": Words(
        "After 429 or 503 it leaves the whole host alone, for as long as Retry-After says.",
        "Nach 429 oder 503 lässt er den ganzen Host in Ruhe, so lange wie Retry-After sagt.",
        "Après 429 ou 503, il laisse tout l’hôte tranquille aussi longtemps que l’indique Retry-After.",
        "Tras 429 o 503 deja en paz a todo el host durante el tiempo que indique Retry-After.",
    ),
    "nofollow": Words(
        "nofollow in a meta element, a link or an X-Robots-Tag header is honoured.",
        "nofollow in einem meta-Element, einem Link oder der Kopfzeile X-Robots-Tag wird beachtet.",
        "nofollow est respecté dans un élément meta, un lien ou l’en-tête X-Robots-Tag.",
        "Se respeta nofollow en un elemento meta, un enlace o la cabecera X-Robots-Tag.",
    ),
    "never": Words(
        "It sends no cookies, fills in no forms, goes around no login, captcha or paywall, and reads at most {bytes} bytes of a page.",
        "Er sendet keine Cookies, füllt keine Formulare aus, umgeht keine Anmeldung, kein Captcha und keine Bezahlschranke und liest höchstens {bytes} Bytes einer Seite.",
        "Il n’envoie pas de cookies, ne remplit aucun formulaire, ne contourne ni connexion, ni captcha, ni péage, et lit au plus {bytes} octets d’une page.",
        "No envía cookies, no rellena formularios, no elude accesos, captchas ni muros de pago, y lee como máximo {bytes} bytes de una página.",
    ),
    "slow": Words("How to slow it", "Wie man ihn bremst", "Comment le ralentir", "Cómo frenarlo"),
    "slow-how": Words(
        "In your robots.txt, for one request in 30 seconds:",
        "In Ihrer robots.txt, für eine Anfrage in 30 Sekunden:",
        "Dans votre robots.txt, pour une requête toutes les 30 secondes :",
        "En su robots.txt, para una petición cada 30 segundos:",
    ),
    "block": Words("How to block it", "Wie man ihn sperrt", "Comment le bloquer", "Cómo bloquearlo"),
    "block-how": Words(
        "In your robots.txt, for the whole site or a part of it:",
        "In Ihrer robots.txt, für die ganze Website oder einen Teil davon:",
        "Dans votre robots.txt, pour tout le site ou une partie :",
        "En su robots.txt, para todo el sitio o una parte:",
    ),
    "takes": Words(
        "It may take {hours} hours until it is read again.",
        "Es kann {hours} Stunden dauern, bis sie neu gelesen wird.",
        "Il peut s’écouler {hours} heures avant qu’il soit relu.",
        "Pueden pasar {hours} horas hasta que se relea.",
    ),
    "test": Words("Test a robots.txt", "Eine robots.txt prüfen", "Tester un robots.txt", "Probar un robots.txt"),
    "test-how": Words(
        "Paste it and name a page. Nothing is sent: your browser does it.",
        "Fügen Sie sie ein und nennen Sie eine Seite. Nichts wird gesendet: Ihr Browser prüft sie.",
        "Collez-le et indiquez une page. Rien n’est envoyé : votre navigateur s’en charge.",
        "Péguelo e indique una página. No se envía nada: lo hace su navegador.",
    ),
    "test-page": Words("Page", "Seite", "Page", "Página"),
    "test-button": Words("Test", "Prüfen", "Tester", "Probar"),
    "allowed": Words("May be fetched", "Darf abgerufen werden", "Peut être demandée", "Se puede pedir"),
    "blocked": Words("Is not fetched", "Wird nicht abgerufen", "N’est pas demandée", "No se pide"),
    "unread": Words("This is no address.", "Das ist keine Adresse.", "Ce n’est pas une adresse.", "Eso no es una dirección."),
    "whom": Words("Whom to ask", "An wen man sich wendet", "À qui s’adresser", "A quién dirigirse"),
    "write": Words("Write to {contact}; a word is enough, and your site is left alone for good. We do not ask why.",
        "Schreiben Sie an {contact}; ein Wort genügt, und Ihre Website wird auf Dauer in Ruhe gelassen. Wir fragen nicht, warum.",
        "Écrivez à {contact} ; un mot suffit, et votre site est laissé tranquille pour toujours. Nous ne demandons pas pourquoi.",
        "Escriba a {contact}; basta una palabra y su sitio queda en paz para siempre. No preguntamos por qué.",
    ),
    "log": Words(
        "Tell us the host and about when; we have the log of every request and answer with it.",
        "Nennen Sie uns den Host und die ungefähre Zeit; wir haben das Protokoll jeder Anfrage und antworten damit.",
        "Indiquez-nous l’hôte et le moment approximatif ; nous avons le journal de chaque requête et répondons avec lui.",
        "Díganos el host y más o menos cuándo; tenemos el registro de cada petición y respondemos con él.",
    ),
    "changes": Words("Changes", "Änderungen", "Changements", "Cambios"),
    "first": Words("first published", "zuerst veröffentlicht", "première publication", "primera publicación"),
    "user-agent": Words("User-Agent", "User-Agent", "User-Agent", "User-Agent"),
    "contact": Words("contact", "Kontakt", "contact", "contacto"),
    "owner": Words("operator", "Betreiber", "exploitant", "operador"),
    "purpose": Words("purpose", "Zweck", "finalité", "finalidad"),
    "ranges": Words("addresses", "Adressen", "adresses", "direcciones"),
    "seconds": Words("pause in seconds", "Pause in Sekunden", "pause en secondes", "pausa en segundos"),
    "rendering": Words("rendering", "Darstellung im Browser", "affichage dans un navigateur", "apertura en un navegador"),
    "robots-hours": Words("hours until robots.txt is read again", "Stunden, bis robots.txt neu gelesen wird", "heures avant la relecture de robots.txt", "horas hasta releer robots.txt"),
    "most-bytes": Words("most bytes of a page", "höchstens Bytes einer Seite", "octets d’une page au plus", "bytes de una página como máximo"),
    "signatures": Words("signed requests", "signierte Anfragen", "requêtes signées", "peticiones firmadas"),
    "quiet-hours": Words("pause in busy hours", "Pause in Stunden mit vielen Besuchern", "pause aux heures de pointe", "pausa en horas de mucha visita"),
}  # fmt: skip

"""Pages, fragments and the socket: fetch from ``queries``, call one verb, render. No rules live here."""

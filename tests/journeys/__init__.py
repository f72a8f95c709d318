"""The whole product as one: real web, worker, scheduler, databases and browser, walked by its people."""

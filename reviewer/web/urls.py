"""Every page's address. Each room of pages lists its own; this file joins them."""

from __future__ import annotations

from django.contrib.auth import views as auth
from django.urls import include, path

from reviewer.web import inbox, signin, tasks

urlpatterns = [
    path("accounts/login/", signin.SignIn.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("", inbox.inbox, name="inbox"),
    path("tasks/<uuid:task_id>/", tasks.task, name="task"),
    path("tasks/<uuid:task_id>/pane/", tasks.pane, name="task_pane"),
    path("tasks/<uuid:task_id>/decide/", tasks.decide, name="task_decide"),
    path("tasks/<uuid:task_id>/claim/", tasks.claim, name="task_claim"),
    path("tasks/<uuid:task_id>/release/", tasks.release, name="task_release"),
    path("", include("reviewer.web.pages_urls")),
]

class _AccessToken:
    token: str
    expires_on: int

class DefaultAzureCredential:
    def get_token(self, *scopes: str) -> _AccessToken: ...

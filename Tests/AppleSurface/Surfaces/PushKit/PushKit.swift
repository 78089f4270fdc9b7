// PushKit as AppleStandIn has it: docs/design/apple-stand-in.md names the headers.
@_exported public import AppleStandIn

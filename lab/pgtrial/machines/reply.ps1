$ErrorActionPreference = 'SilentlyContinue'
$ProgressPreference = 'SilentlyContinue'
@before@
$reply = @{
@parts@
} | ConvertTo-Json -Depth 4 -Compress
[Console]::Out.Write([regex]::Replace($reply, '[^ -~]', { '\u{0:x4}' -f [int][char]$args[0].Value }))

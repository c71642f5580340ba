$ErrorActionPreference = 'SilentlyContinue'
$ProgressPreference = 'SilentlyContinue'
@before@
$told = @{
@parts@
} | ConvertTo-Json -Depth 4 -Compress
[Console]::Out.Write([regex]::Replace($told, '[^ -~]', { '\u{0:x4}' -f [int][char]$args[0].Value }))

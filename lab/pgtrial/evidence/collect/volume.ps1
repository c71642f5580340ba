volume = Get-CimInstance Win32_LogicalDisk -Filter "DeviceID='@drive@'" | Select-Object FileSystem, DriveType
unit = (Get-Volume -DriveLetter @letter@).AllocationUnitSize
disk = $disk | Select-Object Number, FriendlyName, BusType, FirmwareVersion, Size, LogicalSectorSize, PhysicalSectorSize
physical = Get-PhysicalDisk | Where-Object DeviceId -eq $disk.Number | Select-Object MediaType, BusType
wal = @((Get-Item -Force -LiteralPath @wal@).Target)

disk = Get-CimInstance Win32_PerfRawData_PerfDisk_LogicalDisk -Filter "Name='@drive@'" | Select-Object DiskReadBytesPersec, DiskReadsPersec, DiskWriteBytesPersec, DiskWritesPersec

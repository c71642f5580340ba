# of all groups of processors, where Win32_PerfRawData_PerfOS_Processor has the 64 of one
cpu = @(Get-CimInstance Win32_PerfRawData_Counters_ProcessorInformation | Where-Object Name -notlike '*_Total' | Select-Object PercentIdleTime, PercentUserTime, PercentPrivilegedTime, PercentInterruptTime, PercentDPCTime)
system = Get-CimInstance Win32_PerfRawData_PerfOS_System | Select-Object ContextSwitchesPersec
memory = Get-CimInstance Win32_PerfRawData_PerfOS_Memory | Select-Object AvailableBytes, ModifiedPageListBytes, StandbyCacheNormalPriorityBytes, StandbyCacheReserveBytes, StandbyCacheCoreBytes
network = @(Get-CimInstance Win32_PerfRawData_Tcpip_NetworkInterface | Select-Object BytesTotalPersec)
processes = @(Get-CimInstance Win32_Process -Filter "Name='postgres.exe'" | Select-Object ProcessId, ParentProcessId, KernelModeTime, UserModeTime, @{n='Created';e={$_.CreationDate.Ticks}})
own = [Diagnostics.Process]::GetCurrentProcess().TotalProcessorTime.Ticks

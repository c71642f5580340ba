-- What do lines bring that fit one of three descriptions?
select sum(l.price * (1 - l.discount)) as net, count(*) as lines
from lines l
join parts p on p.part_id = l.part_id
where (p.brand = 'A2' and p.packing in ('small bag', 'small box', 'small can', 'small crate')
       and l.quantity between 2 and 14 and p.size between 1 and 10
       and l.carrier in ('air', 'courier') and l.handling = 'signed')
   or (p.brand = 'D5' and p.packing in ('medium bag', 'medium box', 'medium can', 'medium crate')
       and l.quantity between 10 and 25 and p.size between 1 and 20
       and l.carrier in ('air', 'courier') and l.handling = 'signed')
   or (p.brand = 'F1' and p.packing in ('large bag', 'large box', 'large can', 'large crate')
       and l.quantity between 20 and 40 and p.size between 1 and 30
       and l.carrier in ('air', 'courier') and l.handling = 'signed');
